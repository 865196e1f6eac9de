"""Exact mapping by dynamic programming over sets of tasks: which set goes into which block of GPUs."""

from __future__ import annotations

import time
from functools import lru_cache
from itertools import combinations, permutations

import numpy as np

from placeopt.problem import IntArray
from placeopt.rank_mapping.blocks import Block, Blocks
from placeopt.rank_mapping.case import FloatArray, MappingProblem

MAX_TASKS = 16
"""Tasks up to which all 2^n sets are held: 0.5 MB an array."""

MAX_TABLE = 8
"""GPUs up to which all arrangements are listed: 8! = 40,320, on a DGX-1 840 that differ."""

CHUNK = 1 << 22
"""Arrangements x sets priced at once: 32 MB."""


def map_by_sets(case: MappingProblem, blocks: Blocks, deadline: float = np.inf) -> IntArray | None:
    """
    Return an order of least cost; None above 16 tasks, for tables of more than 8 GPUs, or if the deadline comes first.

    What a block costs depends only on the *set* of tasks in it: for a star, the least over all ways to split the set
    among its children of what these cost, and the traffic between them times the distance. Blocks of one shape share
    their costs. Children are joined one by one; joining b GPUs to a GPUs looks at C(n, a + b) C(a + b, a) pairs of
    sets, at most 2 million for 16 tasks. The recursion over subsets is Held and Karp's (1962); that over a tree ours.
    """
    if case.num_tasks > MAX_TASKS or any(len(leaf.gpus) > MAX_TABLE for leaf in blocks.root.leaves):
        return None
    out = np.full(case.num_tasks, -1, dtype=np.int64)
    try:
        sets = _Sets(case, blocks, deadline)
        sets.place(blocks.root, len(sets.bits) - 1, out)
    except TimeoutError:
        return None
    return out


class _Sets:
    """Sets of tasks are integers, bit t for task t; costs have shape (2^n,), infinite where a set cannot be."""

    def __init__(self, case: MappingProblem, blocks: Blocks, deadline: float) -> None:
        self.case, self.blocks, self.deadline = case, blocks, deadline
        self.bits = np.arange(1 << case.num_tasks)[:, None] >> np.arange(case.num_tasks) & 1  # (2^n, n)
        self.sizes = self.bits.sum(axis=1)
        self.inside = ((self.bits @ case.traffic) * self.bits).sum(axis=1) / 2  # traffic between members of each set
        ranks = self.bits.reshape(len(self.bits), -1, case.size).sum(axis=2)
        self.torn = ((ranks > 0) & (ranks < case.size)).any(axis=1)  # sets with a part of a rank
        self.known: dict[object, FloatArray] = {}

    def place(self, block: Block, tasks: int, out: IntArray) -> None:
        """Write the GPUs of the best order of a set of tasks in a block to ``out``, deciding from the root down."""
        if not block.children:
            members = np.flatnonzero(self.bits[tasks])
            rows, positions = self._arrangements(block)
            best = int((rows @ self._prices(members[None]))[:, 0].argmin())
            out[members] = np.array(block.gpus)[positions[best]]
            return
        self._costs(block)
        for count in range(len(block.children) - 1, 0, -1):
            parts = self._parts(np.array([tasks]), len(block.children[count].gpus))[0]
            costs = self._joined(block, count)[tasks - parts] + self._own(block, count)[parts]
            part = int(parts[costs.argmin()])
            self.place(block.children[count], part, out)
            tasks -= part
        self.place(block.children[0], tasks, out)

    def _costs(self, block: Block) -> FloatArray:
        """Least cost of each set in a block, with the ways out of its GPUs."""
        key = self._shape(block)
        if key not in self.known:
            if block.children:
                costs = self._joined(block, len(block.children)) + block.apart * self.inside
            else:
                costs = self._on_leaf(block)
            if self._closed(block):
                costs[self.torn] = np.inf
            self.known[key] = costs
        return self.known[key]

    def _own(self, star: Block, child: int) -> FloatArray:
        """Cost of each set in a child, less what the traffic inside the set would pay across the star's centre."""
        return np.asarray(self._costs(star.children[child]) - star.apart * self.inside)

    def _joined(self, star: Block, count: int) -> FloatArray:
        """Least sum of ``_own`` over the first children."""
        if count == 1:
            return self._own(star, 0)
        key = count, self._shape(star)
        if key not in self.known:
            before, own = self._joined(star, count - 1), self._own(star, count - 1)
            self._check_time()
            sizes = [len(child.gpus) for child in star.children[:count]]
            sets = np.flatnonzero(self.sizes == sum(sizes))
            parts = self._parts(sets, sizes[-1])
            self.known[key] = np.full(len(self.bits), np.inf)
            self.known[key][sets] = (before[sets[:, None] - parts] + own[parts]).min(axis=1)
        return self.known[key]

    def _on_leaf(self, block: Block) -> FloatArray:
        """One matrix product: (arrangements, pairs and members) @ (pairs and members, sets), some sets at a time."""
        sets = np.flatnonzero(self.sizes == len(block.gpus))
        members = np.nonzero(self.bits[sets])[1].reshape(len(sets), -1)
        rows, _ = self._arrangements(block)
        costs, step = np.full(len(self.bits), np.inf), max(1, CHUNK // len(rows))
        for i in range(0, len(sets), step):
            self._check_time()
            costs[sets[i : i + step]] = (rows @ self._prices(members[i : i + step])).min(axis=0)
        return costs

    def _prices(self, members: IntArray) -> FloatArray:
        """Shape (pairs + m, sets): traffic of each pair of a set's tasks, (sets, m), and all traffic of each."""
        a, b = np.triu_indices(members.shape[1], 1)
        return np.vstack([self.case.traffic[members[:, a], members[:, b]].T, self.case.traffic.sum(axis=1)[members].T])

    def _arrangements(self, block: Block) -> tuple[FloatArray, IntArray]:
        gpus = list(block.gpus)
        inner, out = self.blocks.inner[np.ix_(gpus, gpus)], self.blocks.out[gpus]
        if block is self.blocks.root and self.case.size > 1:  # a table of several groups is always the root
            return _arrangements(inner.tobytes(), out.tobytes(), self.case.groups.tobytes(), self.case.size)
        return _arrangements(inner.tobytes(), out.tobytes(), bytes(8 * len(gpus)), 1)

    def _parts(self, sets: IntArray, size: int) -> IntArray:
        """Shape (sets, choices): all subsets of ``size`` of sets that are equally large."""
        members = np.nonzero(self.bits[sets])[1].reshape(len(sets), -1)
        choices = np.array(list(combinations(range(members.shape[1]), size)))
        chosen = np.zeros((members.shape[1], len(choices)))
        chosen[choices.T, np.arange(len(choices))] = 1
        return ((1 << members).astype(np.float64) @ chosen).astype(np.int64)

    def _shape(self, block: Block) -> object:
        """Blocks of one shape cost the same with every set."""
        if block.children:
            return block.apart, self._closed(block), *(self._shape(child) for child in block.children)
        gpus = list(block.gpus)
        inner = self.blocks.inner[np.ix_(gpus, gpus)] if block.is_table else np.zeros(0)
        return inner.tobytes(), self._closed(block), self.blocks.out[gpus].tobytes()

    def _closed(self, block: Block) -> bool:
        """Whether a block of whole groups, so that no rank lies across its border."""
        return self.case.size > 1 and self.case.holds_groups(block.gpus)

    def _check_time(self) -> None:
        if time.monotonic() >= self.deadline:
            raise TimeoutError


@lru_cache(maxsize=4)  # up to 14 MB each; a job meets one or two kinds of machine
def _arrangements(inner: bytes, out: bytes, groups: bytes, size: int) -> tuple[FloatArray, IntArray]:
    """
    Arrangements that differ: distances of all pairs of tasks and ways out, (P, m (m - 1) / 2 + m), and GPUs, (P, m).

    ``size`` tasks in a row stay in one group. Arrangements that symmetries turn into each other stand once.
    """
    ways = np.frombuffer(out)
    matrix = np.frombuffer(inner).reshape(len(ways), len(ways))
    positions = np.array(list(permutations(range(len(ways)))), dtype=np.int64)
    nodes = np.frombuffer(groups, dtype=np.int64)[positions].reshape(len(positions), -1, size)
    positions = positions[(nodes == nodes[:, :, :1]).all(axis=(1, 2))]
    a, b = np.triu_indices(len(ways), 1)
    rows = np.hstack([matrix[positions[:, a], positions[:, b]], ways[positions]])
    codes = np.searchsorted(np.unique(rows), rows).astype(np.uint8)  # at most 36 values
    first = np.unique(codes, axis=0, return_index=True)[1]
    return rows[first], positions[first]
