"""Decisions in microseconds: the score of every shape of job on every node, of which a decision changes one column."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import ClassVar, Protocol, runtime_checkable

import numpy as np

from placeopt.heuristics.option_shapes import option_shapes
from placeopt.problem import CPU, MEMORY, BoolArray, Problem, State
from placeopt.problem.free_capacity import room_decides

FloatArray = np.ndarray

MOST_CELLS = 1 << 24
"""Shapes x nodes beyond which there is no table: eight bytes each."""
MOST_KNOWN = 1 << 22
"""Scores in the columns that are cached, and GPUs in the choices; beyond that the cache is cleared."""
MOST_STATES = 1 << 16
"""States of a node's GPUs of which a score caches what depends on them alone; beyond that the cache is cleared."""


class Columns(ABC):
    """What a job costs on a node, for all shapes of jobs at once that `served` has, each by its first option."""

    in_place: ClassVar[bool] = False
    """Whether it matters which of the GPUs of a node are free, and not only how many."""

    def __init__(self, state: State) -> None:
        self.state, self.problem, options = state, state.problem, state.problem.options
        options_of_table = np.flatnonzero(served(self.problem))
        shapes = np.array(option_shapes(self.problem), dtype=np.int64)[options_of_table]
        _, first, row = np.unique(shapes, return_index=True, return_inverse=True)
        self.row: dict[int, int] = dict(zip(options_of_table.tolist(), row.tolist(), strict=True))
        """Option -> row of its shape; others are not in the table."""
        of = self.of = options_of_table[first]
        self.cpu, self.memory = options.demand[of, CPU], options.demand[of, MEMORY]  # (S,)
        self.gpus, self.milli = options.gpus[of], np.where(options.gpus[of] > 0, options.milli[of], 0)  # (S,)
        self.node_class_ok: BoolArray = options.node_class_ok[of]  # (S, classes of nodes)

    @abstractmethod
    def column(self, node_class: int, cpu: int, memory: int, left: tuple[int, ...]) -> FloatArray:
        """
        Return the score of every shape on a node, (S,), whatever it is where the shape does not fit.

        ``cpu`` and ``memory`` are free on the node, ``left`` are the thousandths left of each of its GPUs, ascending;
        in the order of the GPUs where the columns are `in_place`.
        """

    def fits(self, node_class: int, cpu: int, memory: int, left: tuple[int, ...]) -> BoolArray:
        """Shape (S,): whether a job of each shape has room on a node; the rest as in ``column``."""
        enough = len(left) - np.array(sorted(left), dtype=np.int64).searchsorted(self.milli) >= self.gpus
        enough &= self.cpu <= cpu
        enough &= self.memory <= memory
        enough &= self.node_class_ok[:, node_class]
        return enough


@runtime_checkable
class ColumnScore(Protocol):
    """A score that also computes whole columns of the table."""

    def columns(self, state: State) -> Columns | None:
        """Prepare for all shapes of jobs; None where scoring one shape at a time is quicker."""


def served(problem: Problem) -> BoolArray:
    """Shape (O,): options that a table decides as candidates would: of one worker, for which nothing but room binds."""
    options = problem.options
    if not room_decides(problem) or problem.jobs_per_gpu is not None or problem.changeable:
        return np.zeros(len(options), dtype=bool)
    laid = zip(options.splits, options.spread, options.part_level, strict=True)
    lies = np.array([bool(splits or spread or part) for splits, spread, part in laid], dtype=bool)
    beyond = np.count_nonzero(np.delete(options.demand, (CPU, MEMORY), axis=1), axis=1)
    by_room: BoolArray = (options.workers == 1) & (beyond == 0) & ~lies
    return by_room


def table_of(score: object, state: State) -> ScoreTable | None:
    """Return the table of a score, where it computes whole columns, these serve some options, and memory holds them."""
    columns = score.columns(state) if isinstance(score, ColumnScore) and served(state.problem).any() else None
    small = columns is not None and len(columns.of) * state.problem.num_nodes <= MOST_CELLS
    return ScoreTable(columns) if columns is not None and small else None


class ScoreTable:
    """
    Every score at hand of what `served` has: a decision is the smallest of a row, a change is one column.

    Columns are computed for all shapes at once, so their number hardly matters; a node's column again only when it is
    needed. They are kept, since nodes alike are filled alike: of those that the openb trace asks for three in five
    were asked for before.
    """

    def __init__(self, columns: Columns) -> None:
        state, problem = columns.state, columns.problem
        self._columns = columns
        self._class: list[int] = problem.node_class.tolist()
        self._free = list(state.node_free)  # views: they stay true
        bounds = zip(problem.first_gpu[:-1], problem.first_gpu[1:], strict=True)
        self._left = [state.gpu_free_milli[start:stop] for start, stop in bounds]
        self._stale: dict[int, None] = dict.fromkeys(range(problem.num_nodes))
        self._scores: FloatArray = np.empty((len(columns.of), problem.num_nodes))
        self._rows: list[FloatArray] = list(self._scores)
        self._known: dict[tuple[int, int, int, tuple[int, ...]], FloatArray] = {}

    def _column(self, node: int) -> FloatArray:
        """Return the score of every shape on a node, infinite where it has no room; not to be changed."""
        free, left = self._free[node].tolist(), self._left[node].tolist()
        if min(left, default=0) < 0:
            left = [max(milli, 0) for milli in left]
        if not self._columns.in_place:
            left.sort()
        seen = (self._class[node], free[CPU], free[MEMORY], tuple(left))
        column = self._known.get(seen)
        if column is None:
            if len(self._known) * len(self._rows) >= MOST_KNOWN:
                self._known.clear()
            column = self._known[seen] = np.where(self._columns.fits(*seen), self._columns.column(*seen), np.inf)
        return column

    def changed(self, node: int) -> None:
        """Note that the free capacity of ``node`` changed."""
        self._stale[node] = None

    def has(self, option: int) -> bool:
        """Return whether there is a row for an option."""
        return option in self._columns.row

    def row(self, option: int) -> FloatArray | None:
        """
        Shape (N,): score of every node for a job in an option now, infinite without room; not to be changed.

        None for an option that the table does not have.
        """
        if not self.has(option):
            return None
        for node in self._stale:
            self._scores[:, node] = self._column(node)
        self._stale.clear()
        return self._rows[self._columns.row[option]]
