"""Exact mapping by dynamic programming over sets of tasks: which set goes into which block of GPUs."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import lru_cache
from itertools import combinations, permutations

import numpy as np

from placeopt.problem import IntArray
from placeopt.rank_mapping.case import FloatArray, MappingProblem
from placeopt.rank_mapping.tree import Block, Tree

MAX_TASKS = 16
"""Tasks up to which all 2^n sets are held: 0.5 MB an array."""

MAX_TABLE = 8
"""GPUs up to which all arrangements are listed: 8! = 40,320, on a DGX-1 840 that differ."""

CHUNK = 1 << 22
"""Arrangements x sets priced at once: 32 MB."""

Assign = Callable[[int, IntArray], None]
"""Writes the GPU of each task of a set in a block to an array, (n,)."""


def map_by_sets(case: MappingProblem, tree: Tree, deadline: float = np.inf) -> IntArray | None:
    """
    Return an order of least cost; None above 16 tasks, for tables of more than 8 GPUs, or if the deadline is over.

    What a block costs depends only on the *set* of tasks in it: for a star, the least over all ways to split the set
    among its children of what these cost, and the traffic between them times the distance. Children are joined one by
    one; joining b GPUs to a GPUs looks at C(n, a + b) C(a + b, a) pairs of sets, at most 2 million for 16 tasks. The
    recursion over subsets is Held and Karp's (1962); that over a tree ours.
    """
    if case.num_tasks > MAX_TASKS or _largest_table(tree.root) > MAX_TABLE:
        return None
    order = np.empty(case.num_tasks, dtype=np.int64)
    try:
        _, assign = _Sets(case, tree, deadline).solved(tree.root)
    except TimeoutError:
        return None
    assign((1 << case.num_tasks) - 1, order)
    return order


def _largest_table(block: Block) -> int:
    return max(map(_largest_table, block.children)) if block.children else len(block.gpus)


class _Sets:
    """Sets of tasks are integers, bit t for task t; costs have shape (2^n,), infinite where a set cannot be."""

    def __init__(self, case: MappingProblem, tree: Tree, deadline: float) -> None:
        self.case, self.tree, self.deadline = case, tree, deadline
        self.bits = np.arange(1 << case.num_tasks)[:, None] >> np.arange(case.num_tasks) & 1  # (2^n, n)
        self.sizes = self.bits.sum(axis=1)
        self.inside = ((self.bits @ case.traffic) * self.bits).sum(axis=1) / 2  # traffic between members of each set
        ranks = self.bits.reshape(len(self.bits), -1, case.size).sum(axis=2)
        self.torn = ((ranks > 0) & (ranks < case.size)).any(axis=1)  # sets with a part of a rank

    def solved(self, block: Block) -> tuple[FloatArray, Assign]:
        """Return the least cost of each set in a block, with the ways out of its GPUs, and what assigns its tasks."""
        costs, assign = self._on_star(block) if block.children else self._on_leaf(block)
        if self.case.size > 1 and self.case.holds_groups(block.gpus):
            costs[self.torn] = np.inf
        return costs, assign

    def _on_star(self, star: Block) -> tuple[FloatArray, Assign]:
        """Join the children; what a set of one pays across the centre is taken off, and added for the whole."""
        crossing = star.apart * self.inside
        own = [(costs - crossing, assign) for costs, assign in map(self.solved, star.children)]
        sizes = [len(child.gpus) for child in star.children]
        costs, assign = own[0]
        for count, (more, assign_more) in enumerate(own[1:], 2):
            costs, assign = self._joined(costs, assign, more, assign_more, sum(sizes[:count]), sizes[count - 1])
        return costs + crossing, assign

    def _joined(
        self, first: FloatArray, assign_first: Assign, second: FloatArray, assign_second: Assign, size: int, part: int
    ) -> tuple[FloatArray, Assign]:
        """Split each set of ``size`` tasks at least cost: ``part`` of them go into the second."""
        if time.monotonic() >= self.deadline:
            raise TimeoutError
        sets = np.flatnonzero(self.sizes == size)
        parts = self._subsets(sets, part)
        sums = first[sets[:, None] - parts] + second[parts]
        best = np.arange(len(sets)), sums.argmin(axis=1)
        costs, chosen = np.full(len(self.bits), np.inf), np.zeros(len(self.bits), dtype=np.int64)
        costs[sets], chosen[sets] = sums[best], parts[best]

        def assign(tasks: int, order: IntArray) -> None:
            assign_first(int(tasks - chosen[tasks]), order)
            assign_second(int(chosen[tasks]), order)

        return costs, assign

    def _subsets(self, sets: IntArray, size: int) -> IntArray:
        """Shape (sets, choices): all subsets of ``size`` of sets that are equally large."""
        members = np.nonzero(self.bits[sets])[1].reshape(len(sets), -1)
        choices = np.array(list(combinations(range(members.shape[1]), size)))
        chosen = np.zeros((members.shape[1], len(choices)))
        chosen[choices.T, np.arange(len(choices))] = 1
        return ((1 << members).astype(np.float64) @ chosen).astype(np.int64)

    def _on_leaf(self, leaf: Block) -> tuple[FloatArray, Assign]:
        """One matrix product: (arrangements, pairs and members) @ (pairs and members, sets), some sets at a time."""
        gpus, case = leaf.gpus, self.case
        inner, groups = self.tree.inner[np.ix_(gpus, gpus)], case.groups[gpus]
        groups -= groups.min()
        together = case.size if groups.any() else 1
        rows, positions = _arrangements(inner.tobytes(), self.tree.out[gpus].tobytes(), groups.tobytes(), together)
        a, b = np.triu_indices(len(gpus), 1)

        def prices(members: IntArray) -> FloatArray:
            """Shape (pairs + m, sets): traffic of each pair of a set's tasks, (sets, m), and all traffic of each."""
            return np.vstack([case.traffic[members[:, a], members[:, b]].T, case.traffic.sum(axis=1)[members].T])

        sets = np.flatnonzero(self.sizes == len(gpus))
        members = np.nonzero(self.bits[sets])[1].reshape(len(sets), -1)
        costs, step = np.full(len(self.bits), np.inf), max(1, CHUNK // len(rows))
        for i in range(0, len(sets), step):
            if time.monotonic() >= self.deadline:
                raise TimeoutError
            costs[sets[i : i + step]] = (rows @ prices(members[i : i + step])).min(axis=0)

        def assign(tasks: int, order: IntArray) -> None:
            held = np.flatnonzero(self.bits[tasks])
            order[held] = gpus[positions[int((rows @ prices(held[None]))[:, 0].argmin())]]

        return costs, assign


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
