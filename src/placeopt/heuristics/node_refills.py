"""
Large neighbourhood search for value alone: a node or two are emptied and filled again from all that waits.

A step fills the nodes up to `WAYS` times side by side, in arrays, each time by randomised greedy (Hart and Shogan 1987;
as destroy and repair: Shaw 1998). It suits rounds on which CPU, memory and GPUs bind together: what a node takes is a
vector packing, of which sums over the cluster say little.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import pairwise

import numpy as np

from placeopt.heuristics.candidates import never
from placeopt.problem import Allocation, BoolArray, IntArray, Placement, Problem, State
from placeopt.problem.free_capacity import gpu_milli_left
from placeopt.terms.rules import fits_beyond_room

WAYS_AT_FIRST, WAYS = 16, 64
"""
Fillings that a step draws in the first sweep, and in later ones. With 16 the first sweep gains as much in half of the
time; later 32 and 128 end no better (`resources` and `planted`, seeds 10 to 13).
"""
PRICE_SPREAD = 0.5
"""Standard deviation of the logarithm of a resource's price, drawn for each filling."""
WORTH_SPREADS = (0.0, 0.06, 0.2)
"""The same of what single jobs are worth, one of them for each filling; 0.3 and 0.6 as the largest end no better."""
MOST_WAITING = 160
"""Waiting items that a step looks at, drawn again each time: more take longer than they gain."""
SWEEPS = 2
"""Times that every node is refilled alone before pairs take turns with single nodes."""
GPU = 1000
"""Thousandths of a GPU."""


class NodeRefills:
    """
    A plan whose value only grows. Jobs of several bundles, and running ones, stay where ``allocation`` has them.

    An item is a waiting job in one of its options that one node takes whole, wherever that is. There are P items, and R
    resources that any of them needs.
    The same ``seed`` makes the same steps. ``stop`` is polled while nodes are filled; a step that it ends does nothing.
    """

    def __init__(
        self, problem: Problem, allocation: Allocation, *, seed: int = 0, stop: Callable[[], bool] = never
    ) -> None:
        self._problem, self._allocation, self._stop = problem, allocation, stop
        self._rng = np.random.default_rng(seed)
        options = problem.options
        single = (options.bundles == 1) & (options.value > 0) & options.node_class_ok.any(axis=1)
        single &= [not splits for splits in options.splits]
        able = [placement is None or bool(single[placement.option]) for placement in allocation]
        of_job = {
            job: [o for o in problem.options_of(job) if single[o]]
            for job in range(problem.num_jobs)
            if able[job] and job not in problem.running
        }
        self._job = np.repeat(np.array(list(of_job), dtype=np.int64), [len(found) for found in of_job.values()])
        self._option = np.array([o for found in of_job.values() for o in found], dtype=np.int64)
        ends = np.cumsum([0, *(len(found) for found in of_job.values())]).tolist()
        self._items_of = dict(zip(of_job, pairwise(ends), strict=True))  # job -> its first item, and the one after
        self._one_option = len(self._job) == len(of_job)
        demand = options.demand[self._option] * options.bundle_workers[self._option][:, None]
        self._used = np.flatnonzero(demand.any(axis=0))
        self._need = demand[:, self._used]  # (P, R)
        self._gpus = options.bundle_gpus[self._option]
        self._milli = np.full(len(self._job), GPU) if problem.jobs_per_gpu == 1 else options.milli[self._option]
        self._worth = options.value[self._option]
        self._node_ok = options.node_class_ok[self._option]  # (P, classes of nodes)
        self._waits = np.ones(len(self._job), dtype=bool)  # items of jobs that are nowhere
        self._on: list[list[int]] = [[] for _ in range(problem.num_nodes)]  # items of each node, in order of arrival
        self.value = 0
        """Of the items that are placed."""
        self._read(allocation)
        self._size, self._scarcity = self._sizes()
        self._touched: set[int] = set()
        self._turns: list[int] = []
        self._swept = 0

    def _read(self, allocation: Allocation) -> None:
        """Note which items are placed where, and what is free without them."""
        problem, fixed = self._problem, list(allocation)
        for job, (first, end) in self._items_of.items():
            placement = allocation[job]
            if placement is not None:
                item = first + self._option[first:end].tolist().index(placement.option)
                self._on[placement.nodes[0]].append(item)
                self._mark([item], waits=False)
                self.value += int(self._worth[item])
                fixed[job] = None
        self._fixed: Allocation = tuple(fixed)
        state = State(problem, self._fixed)
        self._free = state.node_free[:, self._used]  # (N, R)
        per_node = np.diff(problem.node_gpu_start)
        slot = np.arange(int(per_node.max(initial=0)))
        exists = slot < per_node[:, None]
        left = gpu_milli_left(state)
        self._left: IntArray = np.full(
            exists.shape, -1, dtype=np.int64
        )  # (N, slots) of each GPU, ascending; -1 where is none
        self._left[exists] = left
        self._left.sort(axis=1)

    def _sizes(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the items in parts of a mean node, (P, R + 1), GPUs last, and demand over capacity, (R + 1,)."""
        problem = self._problem
        capacity = np.maximum(problem.node_capacity[:, self._used].sum(axis=0), 1)
        gpus = np.maximum(GPU * problem.num_gpus, 1)
        size = np.column_stack([self._need / capacity, self._gpus * self._milli / gpus]) * problem.num_nodes
        return size, np.maximum(size.sum(axis=0) / problem.num_nodes, 1e-9)

    def step(self) -> bool:
        """Refill a node or two; return whether that is worth more. What is worth as much is taken as well."""
        nodes = self._next_nodes()
        mine = [item for node in nodes for item in self._on[node]]
        waiting = np.flatnonzero(self._waits)
        if len(waiting) > MOST_WAITING:
            waiting = self._rng.choice(waiting, MOST_WAITING, replace=False)
        ranges = [np.arange(*self._items_of[int(self._job[item])]) for item in mine]
        pool = np.concatenate([*ranges, waiting])
        filled = self._filled(pool, nodes) if len(pool) else None
        if filled is None:
            return False
        worth, fillings = filled
        gained = worth - int(self._worth[mine].sum())
        if gained < 0:
            return False
        self._mark(mine, waits=True)
        for node, items in zip(nodes, fillings, strict=True):
            self._on[node] = items
            self._mark(items, waits=False)
        self._touched.update(nodes)
        self.value += gained
        return gained > 0

    def allocation(self) -> Allocation:
        """Return the plan, without items that a rule beyond room refuses."""
        problem, out = self._problem, list(self._allocation)
        placed = {int(self._job[item]) for items in self._on for item in items}
        for job in self._items_of:
            if job not in placed:
                out[job] = None
        moved = [int(self._job[item]) for node in self._touched for item in self._on[node]]
        for job in moved:
            out[job] = None
        state = State(problem, tuple(out))
        fixed_left = gpu_milli_left(State(problem, self._fixed))
        for node in sorted(self._touched):
            left = fixed_left[problem.first_gpu[node] : problem.first_gpu[node + 1]]
            for item in self._on[node]:
                placement = self._placement(item, node, left)
                job = int(self._job[item])
                if fits_beyond_room(state, job, placement):
                    state.place(job, placement)
        return state.allocation()

    def _placement(self, item: int, node: int, left: IntArray) -> Placement:
        """Put an item onto the GPUs of a node that it fits most tightly; ``left`` of each is updated."""
        problem, option, milli = self._problem, int(self._option[item]), int(self._milli[item])
        order = np.argsort(left, kind="stable")
        first = int(np.searchsorted(left[order], milli))
        chosen = np.sort(order[first : first + int(self._gpus[item])])
        left[chosen] -= milli
        workers = int(problem.options.bundle_workers[option])
        return Placement(option, (node,) * workers, tuple((problem.first_gpu[node] + chosen).tolist()))

    def _next_nodes(self) -> list[int]:
        """Return one node, or two once all had their turns; each has one turn in a sweep."""
        count = 1 if self._swept <= SWEEPS or self._rng.random() < 0.5 else 2
        if len(self._turns) < count:
            self._turns += self._rng.permutation(len(self._on)).tolist()
            self._swept += 1
        nodes, self._turns = self._turns[:count], self._turns[count:]
        return list(dict.fromkeys(nodes))

    def _mark(self, items: Iterable[int], *, waits: bool) -> None:
        """Note that the jobs of items wait, or do not."""
        for item in items:
            first, end = self._items_of[int(self._job[item])]
            self._waits[first:end] = waits

    def _filled(self, pool: IntArray, nodes: list[int]) -> tuple[int, list[list[int]]] | None:
        """
        Return the value of the best of some fillings of ``nodes`` with items of ``pool``, and its items by node.

        None if it was stopped. A filling takes the item of most worth for what it needs at the prices of its resources,
        as long as any fits, and gives it the GPUs that are left fullest.
        """
        rng, count = self._rng, WAYS_AT_FIRST if self._swept <= 1 else WAYS
        ways = np.arange(count)
        need, gpus, milli, worth = self._need[pool], self._gpus[pool], self._milli[pool], self._worth[pool]
        prices = self._scarcity * np.exp(PRICE_SPREAD * rng.standard_normal((count, len(self._scarcity))))
        spread = rng.choice(WORTH_SPREADS, (count, 1))
        rank = (
            worth
            * np.exp(spread * rng.standard_normal((count, len(pool))))
            / np.maximum(prices @ self._size[pool].T, 1e-12)
        )
        open_ = np.ones(rank.shape, dtype=bool)  # (ways, pool): items of jobs that are not taken yet
        total = np.zeros(count, dtype=np.int64)
        taken: list[list[IntArray]] = []
        # the column of the least free of the GPUs that an item takes, were they the freest
        enough = np.maximum(self._left.shape[1] - gpus, 0)
        for node in nodes:
            free = np.repeat(self._free[node][None, :], count, axis=0)
            left = np.repeat(np.append(self._left[node], GPU)[None, :], count, axis=0)  # a last one for items without
            fits = open_ & self._node_ok[pool, self._problem.node_class[node]]
            taken.append([])
            while True:
                if self._stop():
                    return None
                for r in range(free.shape[1]):
                    fits &= need[:, r] <= free[:, r, None]
                fits &= left[:, enough] >= milli
                best = np.where(fits, rank, -1.0).argmax(axis=1)
                goes = fits[ways, best]
                if not goes.any():
                    break
                taken[-1].append(np.where(goes, best, -1))
                free -= np.where(goes[:, None], need[best], 0)
                total += np.where(goes, worth[best], 0)
                _take_gpus(left[:, :-1], np.where(goes, gpus[best], 0), milli[best])
                gone = self._of_same_job(pool, best) & goes[:, None]
                fits &= ~gone
                open_ &= ~gone
        way = int(total.argmax())
        return int(total[way]), [[int(pool[best[way]]) for best in picks if best[way] >= 0] for picks in taken]

    def _of_same_job(self, pool: IntArray, best: IntArray) -> BoolArray:
        """Shape (ways, pool): items of the job of the item ``best`` of each way."""
        if self._one_option:
            same: BoolArray = np.arange(len(pool)) == best[:, None]
            return same
        jobs = self._job[pool]
        equal: BoolArray = jobs == jobs[best][:, None]
        return equal


def _take_gpus(left: IntArray, gpus: IntArray, milli: IntArray) -> None:
    """Take of each row of ``left``, ascending, ``milli`` off the first ``gpus`` entries with room; sort it again."""
    slots = np.arange(left.shape[1])
    first = (left < milli[:, None]).sum(axis=1)
    mine = (slots >= first[:, None]) & (slots < (first + gpus)[:, None])
    left -= mine * milli[:, None]
    left.sort(axis=1)
