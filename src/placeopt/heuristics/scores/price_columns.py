"""Columns of a table of costs: those of ``PriceScore``, all shapes of jobs at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placeopt.heuristics.candidates import closest
from placeopt.heuristics.scores.table import CPU, MEMORY, NEVER
from placeopt.problem import IntArray, State

if TYPE_CHECKING:
    from placeopt.heuristics.scores.prices import PriceScore

MOST_KNOWN = 200_000
"""States of a node's GPUs that are remembered; when there are more, all are forgotten."""
MOST_CELLS = 4_000_000
"""Costs in the columns that are remembered, eight bytes each; when there are more, all are forgotten."""


class PriceColumns:
    """
    The sum that ``PriceScore`` is, by its parts, all in millionths of a GPU: so both give the same integers.

    What depends on the GPUs alone is remembered by what is left of them; the rest is looked up in the table of stranded
    GPUs by what CPU and memory could serve. Whole columns are remembered too: nodes alike are filled alike, and of
    those that the openb trace asks for three in five were asked for before.
    """

    def __init__(self, prices: PriceScore, state: State, representatives: list[int]) -> None:
        self._state = state
        problem, options = state.problem, state.problem.options
        of = np.array(representatives, dtype=np.int64)
        self._cpu, self._memory = options.demand[of, CPU], options.demand[of, MEMORY]
        self._per_gpu = int(prices.per_gpu[0]), int(prices.per_gpu[1])
        self._stranded, self._untouched, self._lowest = prices.stranded, prices.untouched, prices.lowest
        gpus, milli = options.gpus[of], options.milli[of]
        asked = gpus * milli
        self._by_cpu, self._by_memory = (prices.need[of] - asked[:, None] - prices.lowest).T.copy()
        kinds = sorted(set(zip(gpus.tolist(), milli.tolist(), strict=True)))  # GPUs of so much each
        at = {kind: i for i, kind in enumerate(kinds)}
        self._kind = np.array([at[kind] for kind in zip(gpus.tolist(), milli.tolist(), strict=True)], dtype=np.int64)
        self._gpus = np.array([kind[0] for kind in kinds], dtype=np.int64)
        rows = prices.loss[np.searchsorted(prices.shares, [kind[1] for kind in kinds])].reshape(len(kinds), 1001)
        too_little = np.arange(1001) < np.array([kind[1] for kind in kinds], dtype=np.int64)[:, None]
        self._paid: IntArray = np.where(too_little, NEVER, rows).T.copy()  # (1001, kinds) by what is left of the GPU
        self._by_class = {
            c: asked * prices.node_price[n] + np.where(options.node_class_ok[of, c], 0, NEVER)
            for c, n in {c: n for n, c in enumerate(problem.node_class.tolist())}.items()
        }
        self._share, self._count = milli.tolist(), gpus.tolist()
        self._cache: dict[tuple[int, tuple[int, ...]], tuple[int, IntArray]] = {}
        self._columns: dict[tuple[int, int, int, tuple[int, ...]], IntArray] = {}
        self._most_columns = MOST_CELLS // max(len(of), 1)
        self._chosen: dict[tuple[int, int, tuple[int, ...]], tuple[int, ...]] = {}
        self._class = problem.node_class.tolist()

    def column(self, node_class: int, cpu: int, memory: int, left: tuple[int, ...]) -> IntArray:
        """See ``Columns``; what is returned is remembered, so it must not be written to."""
        state = (node_class, cpu, memory, tuple(sorted(left)))
        cost = self._columns.get(state)
        if cost is None:
            if len(self._columns) >= self._most_columns:
                self._columns.clear()
            cost = self._columns[state] = self._work_out(*state)
        return cost

    def _work_out(self, node_class: int, cpu: int, memory: int, left: tuple[int, ...]) -> IntArray:
        """Return the cost of every shape; ``left`` ascending."""
        key = (node_class, left)
        cached = self._cache.get(key)
        if cached is None:
            if len(self._cache) >= MOST_KNOWN:
                self._cache.clear()
            cached = self._cache[key] = sum(left), self._of_gpus(left) + self._by_class[node_class]
        idle, part = cached
        by_cpu, by_memory = idle - cpu * 1000 // self._per_gpu[0], idle - memory * 1000 // self._per_gpu[1]
        cost: IntArray = self._stranded.take(self._by_cpu + by_cpu, mode="clip")
        cost += self._stranded.take(self._by_memory + by_memory, mode="clip")
        cost += part
        now = self._stranded.take((by_cpu - self._lowest, by_memory - self._lowest), mode="clip")
        cost -= now[0] + now[1]
        lacking = self._cpu > cpu
        lacking |= self._memory > memory
        np.putmask(cost, lacking, NEVER)
        return cost

    def _of_gpus(self, left: tuple[int, ...]) -> IntArray:
        """Shape (S,): what the GPUs taken cost, and those that stay untouched; ``left`` ascending."""
        if left:
            paid = self._paid[list(left)]
            paid.sort(axis=0)
            last = np.minimum(self._gpus, len(left)) - 1
            cost = paid.cumsum(axis=0)[last, np.arange(len(last))]
            cost[self._gpus == 0] = 0
        else:
            cost = np.zeros(len(self._gpus), dtype=np.int64)
        cost[self._gpus > len(left)] = NEVER
        cost += self._untouched * sum(one >= 1000 for one in left)
        of_shapes: IntArray = np.minimum(cost, NEVER)[self._kind]
        return of_shapes

    def slots(self, shape: int, node: int, left: tuple[int, ...]) -> tuple[int, ...]:
        """See ``Columns``; as ``PriceScore.pick``, in indices of the node."""
        need = self._count[shape]
        if not need:
            return ()
        key = (int(self._kind[shape]), self._class[node], left)
        found = self._chosen.get(key)
        if found is None:
            if len(self._chosen) >= MOST_KNOWN:
                self._chosen.clear()
            found = self._chosen[key] = self._choose(shape, node, left)
        return found

    def _choose(self, shape: int, node: int, left: tuple[int, ...]) -> tuple[int, ...]:
        share, need = self._share[shape], self._count[shape]
        usable = [slot for slot, one in enumerate(left) if one >= share]
        if len(usable) <= need:
            return tuple(usable)
        if share < 1000:
            paid = self._paid[:, self._kind[shape]]
            return tuple(sorted(sorted(usable, key=lambda slot: (int(paid[left[slot]]), slot))[:need]))
        start = self._state.problem.first_gpu[node]
        chosen = closest(self._state.problem, self._state, [start + slot for slot in usable], need)
        return tuple(gpu - start for gpu in chosen)
