"""The pool: fillings of units as columns, from wherever they come, each once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from placeopt.formulations.fillings.groups import BundleGroups
from placeopt.formulations.fillings.pricing import Filling
from placeopt.formulations.fillings.units import Units
from placeopt.problem import Allocation, IntArray, Problem


class Column(NamedTuple):
    """A unit and what it holds."""

    unit: int
    filling: Filling


class Pool:
    """Columns in the order in which they came."""

    def __init__(self, units: Units, bundle_groups: BundleGroups) -> None:
        self._unit_of = np.full(1 + max((int(nodes[-1]) for nodes in units.nodes), default=0), -1, dtype=np.int64)
        for unit, nodes in enumerate(units.nodes):
            self._unit_of[nodes] = unit
        self._bundle_groups = bundle_groups
        self.columns: list[Column] = []
        self._known: set[Column] = set()
        self._of_unit: list[list[int]] = [[] for _ in range(len(units))]
        self._held = np.zeros((0, len(bundle_groups)), dtype=np.int64)

    def __len__(self) -> int:
        """Return the number of columns."""
        return len(self.columns)

    def add(self, columns: Iterable[Column]) -> int:
        """Add columns; return how many were new."""
        before = len(self.columns)
        for column in columns:
            if column.filling and column not in self._known:
                self._known.add(column)
                self._of_unit[column.unit].append(len(self.columns))
                self.columns.append(column)
        return len(self.columns) - before

    def add_plan(self, problem: Problem, allocation: Allocation) -> int:
        """Add the filling of every node as an allocation has it; running jobs are part of the unit."""
        of_node: dict[int, Counter[int]] = {}
        workers, of_option = problem.options.bundle_workers.tolist(), self._bundle_groups.of_option.tolist()
        for job, placement in enumerate(allocation):
            if placement is not None and job not in problem.running:
                for node in placement.nodes[:: workers[placement.option]]:
                    of_node.setdefault(node, Counter())[of_option[placement.option]] += 1
        return self.add(Column(int(self._unit_of[node]), tuple(sorted(held.items()))) for node, held in of_node.items())

    @property
    def held(self) -> IntArray:
        """Shape (columns, D): bundles of each group."""
        if len(self._held) < len(self.columns):
            more = np.zeros((len(self.columns) - len(self._held), len(self._bundle_groups)), dtype=np.int64)
            for row, column in zip(more, self.columns[len(self._held) :], strict=True):
                for group, number in column.filling:
                    row[group] = number
            self._held = np.concatenate([self._held, more])
        return self._held

    def most(self, pays: IntArray, unit: int) -> int:
        """Return what the known fillings of a unit pay at most; 0 for an empty unit."""
        return int((self.held[self._of_unit[unit]] @ pays).max(initial=0))
