"""The pool: fillings of units as columns, from wherever they come, each once; and a mix of them as jobs on nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import numpy as np

from placeopt.formulations.fillings.groups import BundleGroups, Starts
from placeopt.formulations.fillings.units import Units
from placeopt.problem import Allocation, IntArray, Problem

Filling = tuple[tuple[int, int], ...]
"""(item, number) pairs, ascending: what a unit holds beside what runs there; items are bundle groups, or pieces."""


class Column(NamedTuple):
    """A unit, what it holds, and what that costs."""

    unit: int
    filling: Filling
    cost: int = 0


class Pool:
    """Columns in the order in which they came."""

    def __init__(self, units: int, items: int) -> None:
        """``units``, ``items``: How many there are."""
        self._units, self._items = units, items
        self.columns: list[Column] = []
        self._known: set[Column] = set()
        self._held = np.zeros((0, items), dtype=np.int64)

    def __len__(self) -> int:
        """Return the number of columns."""
        return len(self.columns)

    def add(self, columns: Iterable[Column]) -> int:
        """Add columns; return how many were new."""
        before = len(self.columns)
        for column in columns:
            if column.filling and column not in self._known:
                self._known.add(column)
                self.columns.append(column)
        return len(self.columns) - before

    @property
    def held(self) -> IntArray:
        """Shape (columns, items): how often each holds each item."""
        if len(self._held) < len(self.columns):
            more = np.zeros((len(self.columns) - len(self._held), self._items), dtype=np.int64)
            for row, column in zip(more, self.columns[len(self._held) :], strict=True):
                for item, number in column.filling:
                    row[item] = number
            self._held = np.concatenate([self._held, more])
        return self._held

    @property
    def costs(self) -> IntArray:
        """Shape (columns,): what each costs."""
        return np.array([column.cost for column in self.columns], dtype=np.int64)

    def most(self, pays: IntArray, scale: int = 1) -> IntArray:
        """
        Shape (units,): what the known fillings of each unit pay at most beyond their cost; 0 for an empty one.

        ``pays``, (items,), is in 1 / ``scale`` of a cost.
        """
        out = np.zeros(self._units, dtype=np.int64)
        unit = np.array([column.unit for column in self.columns], dtype=np.int64)
        np.maximum.at(out, unit, self.held @ pays - scale * self.costs)
        return out


def columns_of(problem: Problem, bundle_groups: BundleGroups, units: Units, allocation: Allocation) -> Iterator[Column]:
    """Yield the filling of every node as an allocation has it; running jobs are part of the unit."""
    of_node: dict[int, Counter[int]] = {}
    workers, of_option = problem.options.bundle_workers.tolist(), bundle_groups.of_option.tolist()
    for job, placement in enumerate(allocation):
        if placement is not None and job not in problem.running:
            for node in placement.nodes[:: workers[placement.option]]:
                of_node.setdefault(node, Counter())[of_option[placement.option]] += 1
    unit_of = {node: unit for unit, nodes in enumerate(units.nodes) for node in nodes.tolist()}
    for node, held in of_node.items():
        yield Column(unit_of[node], tuple(sorted(held.items())))


def requests_of(
    problem: Problem,
    bundle_groups: BundleGroups,
    starts: Starts,
    units: Units,
    number: IntArray,
    used: Iterable[tuple[Column, int]],
) -> Iterator[tuple[int, int, tuple[int, ...]]]:
    """
    Yield (job, option, one node a bundle) of a mix, those with large bundles first, which fit worst later.

    ``number``, shape (W,), is how many jobs run in each start; ``used`` is on how many nodes each column lies. Nodes
    of a unit take their fillings rack by rack, so equal ones lie together, and with them the bundles of a job: it takes
    those of a rack that has no more of them than it has to, or else of those that have most.
    Jobs that take nothing that binds are left out: they lie in no filling.
    """
    slots = _slots(problem, units, used)
    left = [iter(jobs.tolist()) for jobs in starts.jobs]
    size = (bundle_groups.gpus * bundle_groups.milli)[starts.bundle_group]
    for start in np.lexsort((-starts.bundles, -size)).tolist():
        racks, bundles = slots.get(int(starts.bundle_group[start]), {}), int(starts.bundles[start])
        for _ in range(int(number[start])):
            job = next(left[int(starts.job_group[start])])
            chosen = _taken(racks, bundles)
            if len(chosen) == bundles:
                yield job, problem.options_of(job)[int(starts.place[start])], chosen


def _slots(problem: Problem, units: Units, used: Iterable[tuple[Column, int]]) -> dict[int, dict[int, list[int]]]:
    """Nodes by bundle group and rack, one entry a bundle, in order."""
    rack = problem.topology.node_domain
    nodes = [iter(of_unit[np.argsort(rack[of_unit], kind="stable")].tolist()) for of_unit in units.nodes]
    out: dict[int, dict[int, list[int]]] = {}
    for column, times in used:
        for _ in range(times):
            node = next(nodes[column.unit])
            for group, bundles in column.filling:
                out.setdefault(group, {}).setdefault(int(rack[node]), []).extend([node] * bundles)
    for racks in out.values():
        for slots in racks.values():
            slots.sort(reverse=True)  # they are taken from the end
    return out


def _taken(racks: dict[int, list[int]], bundles: int) -> tuple[int, ...]:
    """Take slots for a job, fewer where there are no more."""
    free = {rack: len(slots) for rack, slots in racks.items()}
    enough = [rack for rack in racks if free[rack] >= bundles]
    chosen: list[int] = []
    for rack in [min(enough, key=lambda r: (free[r], r))] if enough else sorted(free, key=lambda r: (-free[r], r)):
        while racks[rack] and len(chosen) < bundles:
            chosen.append(racks[rack].pop())
        if not racks[rack]:
            del racks[rack]
    return tuple(chosen)
