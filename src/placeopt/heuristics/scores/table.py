"""Decisions in microseconds: the cost of every shape of job on every node, of which a decision changes one column."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from placeopt.heuristics.score_cache import option_shapes
from placeopt.problem import CPU, MEMORY, BoolArray, IntArray, Placement, Problem, State
from placeopt.terms.rules.minimal_utility import applies

NEVER = 1 << 50
"""Cost where a job does not fit; costs that are added to it leave it above ``NEVER // 2``."""

MOST_CELLS = 20_000_000
"""Shapes x nodes beyond which there is no table: eight bytes each."""


class Columns(Protocol):
    """What a job costs on a node, for all shapes of jobs at once."""

    def column(self, node_class: int, cpu: int, memory: int, left: tuple[int, ...]) -> IntArray:
        """
        Return the cost of every shape on a node, (S,), above ``NEVER // 2`` where it does not fit.

        ``cpu`` and ``memory`` are free on the node, ``left`` are the thousandths left of each of its GPUs.
        """

    def slots(self, shape: int, node: int, left: tuple[int, ...]) -> tuple[int, ...]:
        """Return which of the node's GPUs a job of ``shape``, which fits, gets: indices in the node."""


class ColumnScore(Protocol):
    """A score that also computes whole columns of the table; ``ScoreSpec.has_columns`` says which scores do."""

    def columns(self, state: State, representatives: list[int]) -> Columns:
        """Prepare for the shapes of jobs, each represented by an option."""


def serves(problem: Problem) -> bool:
    """Return whether a table decides the problem as candidates would: one worker a job, and nothing but room binds."""
    options = problem.options
    first = problem.gpu_type[problem.node_gpu_start[:-1].clip(max=max(problem.num_gpus - 1, 0))[problem.gpu_node]]
    return bool(
        problem.shares_bind
        and problem.jobs_per_gpu is None
        and (options.workers == 1).all()
        and not options.gpu_memory_mib.any()
        and not np.delete(options.demand, (CPU, MEMORY), axis=1).any()
        and not any(options.splits)
        and not problem.has_shared_limits
        and not problem.changeable
        and not applies(problem)
        and (problem.gpu_type == first).all()
        and len(set(option_shapes(problem))) * problem.num_nodes <= MOST_CELLS
    )


class ScoreTable:
    """
    A chooser that keeps every score at hand: a decision is the smallest of a row, a change is one column.

    It decides as ``ByScore`` with the same score does, ties by node number included, where ``serves`` holds. Columns
    are worked out for all shapes at once, so their number hardly matters; a node's column again only when it is needed.
    """

    def __init__(self, state: State, score: ColumnScore) -> None:
        problem = self._problem = state.problem
        self._shape = option_shapes(problem)
        count = max(self._shape, default=-1) + 1
        representatives = [self._shape.index(shape) for shape in range(count)]
        self._columns = score.columns(state, representatives)
        self._class: list[int] = problem.node_class.tolist()
        self._start = problem.first_gpu
        self._free = list(state.node_free)  # views: they stay true
        bounds = zip(self._start[:-1], self._start[1:], strict=True)
        self._left = [state.gpu_free_milli[start:stop] for start, stop in bounds]
        self._options: list[list[int]] = []
        for k in range(len(problem.class_option_start) - 1):
            options_of_class = range(int(problem.class_option_start[k]), int(problem.class_option_start[k + 1]))
            self._options.append(sorted(options_of_class, key=lambda o: -int(problem.options.value[o])))
        self._job_class: list[int] = problem.job_class.tolist()
        self._stale: dict[int, None] = {}
        self.restricted_to: BoolArray | None = None
        """Shape (N,): the only nodes in question; None: all."""
        self._cost: IntArray = np.empty((count, problem.num_nodes), dtype=np.int64)
        alike: dict[tuple[object, ...], list[int]] = {}
        for n, node_class in enumerate(self._class):
            key = (node_class, self._free[n].tobytes(), self._left[n].tobytes())
            alike.setdefault(key, []).append(n)
        for nodes in alike.values():
            self._cost[:, nodes] = self._column(nodes[0])[:, None]
        self._rows = list(self._cost)

    def _column(self, node: int) -> IntArray:
        free = self._free[node].tolist()
        return self._columns.column(self._class[node], free[CPU], free[MEMORY], tuple(self._left[node].tolist()))

    def changed(self, node: int) -> None:
        """Note that the free capacity of ``node`` changed."""
        self._stale[node] = None

    def cost(self, option: int, node: int) -> int:
        """Return what a job costs on a node in an option now; above ``NEVER // 2`` where it has no room."""
        self._update()
        return int(self._rows[self._shape[option]][node])

    def _update(self) -> None:
        for node in self._stale:
            self._cost[:, node] = self._column(node)
        self._stale.clear()

    def place(self, job: int) -> Placement | None:
        """See ``Chooser``: the first option by value that fits anywhere, where it costs least."""
        if self._stale:
            self._update()
        for option in self._options[self._job_class[job]]:
            shape = self._shape[option]
            row = self._rows[shape]
            if self.restricted_to is not None:
                row = np.where(self.restricted_to, row, NEVER)
            node = int(row.argmin())
            if row[node] < NEVER // 2:
                start = self._start[node]
                slots = self._columns.slots(shape, node, tuple(self._left[node].tolist()))
                return Placement(option, (node,), tuple([start + slot for slot in slots]))
        return None
