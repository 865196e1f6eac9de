"""
Exact mapping by dynamic programming over sets of tasks: which set goes into which block, and how it lies on a table.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations, permutations

import numpy as np

from placeopt.problem import IntArray
from placeopt.rank_mapping.case import FloatArray, MappingProblem
from placeopt.rank_mapping.hierarchy import Block, tables_of

MAX_TABLE = 8
"""GPUs up to which all arrangements are listed: 8! = 40,320, on a DGX-1 840 that differ."""

CHUNK = 4_000_000
"""Arrangements x sets priced at once: 32 MB."""

MAX_TASKS = 16
"""Tasks up to which all 2^n sets are held: 0.5 MB an array."""


def cheapest(case: MappingProblem, block: Block, sets: IntArray, deadline: float = np.inf) -> FloatArray:
    """
    Shape (sets,): least cost of each set of tasks on the table, its members' own ways out included.

    One matrix product: (arrangements x pairs of GPUs) @ (pairs of tasks x sets), some sets at a time. Raises
    ``TimeoutError`` at the deadline.
    """
    distances, _ = _of_block(case, block)
    step = max(1, CHUNK // len(distances))
    out = np.zeros(len(sets))
    for i in range(0, len(sets), step):
        if time.monotonic() >= deadline:
            raise TimeoutError
        out[i : i + step] = (distances @ _prices(case, block, sets[i : i + step])).min(axis=0)
    return out


def arrange(case: MappingProblem, block: Block, tasks: int) -> IntArray:
    """Shape (m,): GPUs of the set's tasks, ascending by task, in a cheapest arrangement."""
    distances, positions = _of_block(case, block)
    best = int((distances @ _prices(case, block, np.array([tasks])))[:, 0].argmin())
    gpus: IntArray = np.array(block.members, dtype=np.int64)[positions[best]]
    return gpus


def _of_block(case: MappingProblem, block: Block) -> tuple[FloatArray, IntArray]:
    inside = case.distances[np.ix_(block.members, block.members)]
    return _arrangements(inside.tobytes(), block.outside)


@lru_cache(maxsize=4)  # up to 14 MB each; a job meets one or two kinds of machine
def _arrangements(inside: bytes, outside: tuple[float, ...]) -> tuple[FloatArray, IntArray]:
    """
    Arrangements that differ: distances of all pairs of places and the ways out, (P, m (m - 1) / 2 + m), and positions.

    Arrangements that symmetries of the table turn into each other have the same row and stand once.
    """
    size = len(outside)
    matrix = np.frombuffer(inside, dtype=np.float64).reshape(size, size)
    positions = np.array(list(permutations(range(size))), dtype=np.int64)
    a, b = np.triu_indices(size, 1)
    rows = np.hstack([matrix[positions[:, a], positions[:, b]], np.array(outside)[positions]])
    codes = np.searchsorted(np.unique(rows), rows).astype(np.uint8)  # at most 36 values
    first = np.unique(codes, axis=0, return_index=True)[1]
    return rows[first], positions[first]


def _prices(case: MappingProblem, block: Block, sets: IntArray) -> FloatArray:
    """Shape (pairs + m, sets): traffic between a set's tasks, and from each to all tasks outside the set."""
    n, size = case.num_tasks, len(block.members)
    bits = (sets[:, None] >> np.arange(n)) & 1
    members = np.nonzero(bits)[1].reshape(len(sets), size)
    a, b = np.triu_indices(size, 1)
    inner = case.traffic[members[:, a], members[:, b]]
    out = case.traffic.sum(axis=1)[members] - case.traffic[members[:, :, None], members[:, None, :]].sum(axis=2)
    return np.vstack([inner.T, out.T])


def fits_subsets(case: MappingProblem, root: Block) -> bool:
    """Return whether ``map_by_subsets`` takes the case: at most 16 tasks, tables of at most 8 GPUs of one node."""
    return case.num_tasks <= MAX_TASKS and all(
        len(table.members) <= MAX_TABLE and (case.size == 1 or len(np.unique(case.groups[list(table.members)])) == 1)
        for table in tables_of(root)
    )


def map_by_subsets(
    case: MappingProblem, root: Block, *, upper: float = np.inf, deadline: float = np.inf
) -> IntArray | None:
    """
    Return an order of least cost, or None if the deadline comes first.

    Distances in a hierarchy are sums over its edges, so an order costs the sum over blocks of edge weight x traffic
    that leaves the set of tasks in the block, plus the cost inside tables. Both depend on the set alone: F(block, set)
    is the least over ways to split the set among the block's children. Blocks of equal shape share their F. ``upper``
    is the cost of a known order: sets in tables that cannot lead to it or below are left out.

    A merge of blocks of a and b GPUs looks at C(n, a + b) C(a + b, a) pairs, at most 2 million for 16 tasks; twins
    halve that. The recursion over subsets of a tree is ours; the idea is Held and Karp's (1962).
    """
    try:
        return _Subsets(case, upper, deadline).order(root)
    except TimeoutError:
        return None


@dataclass(frozen=True, eq=False)
class _Part:
    """Least cost of every set of ``size`` tasks in one or several blocks, edges above them included."""

    size: int
    values: FloatArray  # (2^n,)


@dataclass(frozen=True, eq=False)
class _Tree:
    """A part and the block, or the two trees, that it stands for."""

    part: _Part
    block: Block | None = None
    pair: tuple[_Tree, _Tree] | None = None


class _Subsets:
    def __init__(self, case: MappingProblem, upper: float, deadline: float) -> None:
        self.case, self.upper, self.deadline = case, upper, deadline
        n = case.num_tasks
        self.inner = _inner(case.traffic)  # (2^n,) traffic inside each set
        masks = np.arange(1 << n, dtype=np.int64)
        degrees = np.zeros(1)
        for degree in case.traffic.sum(axis=1):
            degrees = np.concatenate([degrees, degrees + degree])
        self.cut = degrees - 2 * self.inner  # (2^n,) traffic that leaves it
        bits = (masks[:, None] >> np.arange(n)) & 1  # (2^n, n)
        count = bits.sum(axis=1)
        self.of_size = [masks[count == s] for s in range(n + 1)]
        per_rank = bits.reshape(len(masks), -1, case.size).sum(axis=2)
        self.whole = ((per_rank == 0) | (per_rank == case.size)).all(axis=1)  # (2^n,) only whole ranks
        self.shapes: dict[object, int] = {}
        self.blocks: dict[int, FloatArray] = {}
        self.parts: dict[tuple[int, float], _Part] = {}
        self.merges: dict[tuple[_Part, _Part], _Part] = {}

    def order(self, root: Block) -> IntArray:
        self._values(root)
        out = np.full(self.case.num_tasks, -1, dtype=np.int64)
        self._assign(root, (1 << self.case.num_tasks) - 1, out)
        return out

    def _shape(self, block: Block) -> int:
        """Return a number that blocks share if every set of tasks costs the same in them."""
        if block.is_table:
            key: object = (self.case.distances[np.ix_(block.members, block.members)].tobytes(), block.outside)
        else:
            key = tuple(sorted((self._shape(child), child.weight) for child in block.children))
        return self.shapes.setdefault((len(block.members), key, block.closed), len(self.shapes))

    def _values(self, block: Block) -> FloatArray:
        """F of the block: shape (2^n,), infinite for sets of another size."""
        shape = self._shape(block)
        if shape not in self.blocks:
            size = len(block.members)
            values = np.full(len(self.cut), np.inf)
            if size == 1:
                values[self.of_size[1]] = 0
            elif block.is_table:
                sets = self.of_size[size][self._promising(block)]
                values[sets] = cheapest(self.case, block, sets, self.deadline)
            else:
                values = self._tree(block).part.values.copy()
            if block.closed:
                values[~self.whole] = np.inf
            self.blocks[shape] = values
        return self.blocks[shape]

    def _promising(self, block: Block) -> np.ndarray:
        """Which sets of the table's size, with all pairs as near as can be, cost no more than what is known."""
        n, members = self.case.num_tasks, np.array(block.members)
        sets, distances = self.of_size[len(members)], self.case.distances
        rest = np.setdiff1d(np.arange(n), members)
        across = distances[np.ix_(members, rest)].min() if len(rest) else 0.0
        least = _nearest(distances, members) * self.inner[sets] + across * self.cut[sets]
        least += _nearest(distances, rest) * self.inner[(1 << n) - 1 - sets]
        promising: np.ndarray = least <= self.upper
        return promising

    def _tree(self, star: Block) -> _Tree:
        """Merge the star's children two by two, in an order that stars of one shape share."""
        children = sorted(star.children, key=lambda child: (len(child.members), self._shape(child), child.weight))
        trees = [_Tree(self._part(child), block=child) for child in children]
        while len(trees) > 1:
            first, second, *rest = trees
            merged = _Tree(self._merge(first.part, second.part), pair=(first, second))
            trees = sorted([*rest, merged], key=lambda tree: tree.part.size)
        return trees[0]

    def _part(self, block: Block) -> _Part:
        key = (self._shape(block), block.weight)
        if key not in self.parts:
            self.parts[key] = _Part(len(block.members), self._values(block) + block.weight * self.cut)
        return self.parts[key]

    def _merge(self, first: _Part, second: _Part) -> _Part:
        if (first, second) not in self.merges:
            size = first.size + second.size
            sets = self.of_size[size]
            bits = _members(sets, size)  # (sets, size)
            least = np.full(len(sets), np.inf)
            for chosen in _choices(size, first.size, first is second):
                if time.monotonic() >= self.deadline:
                    raise TimeoutError
                subset = bits[:, chosen].sum(axis=1)
                np.minimum(least, first.values[subset] + second.values[sets - subset], out=least)
            values = np.full(len(self.cut), np.inf)
            values[sets] = least
            self.merges[first, second] = _Part(size, values)
        return self.merges[first, second]

    def _assign(self, block: Block, tasks: int, out: IntArray) -> None:
        """Write the GPUs of the best order of ``tasks`` in ``block`` to ``out``, deciding top down."""
        if block.is_table:
            members = [t for t in range(self.case.num_tasks) if tasks >> t & 1]
            out[members] = arrange(self.case, block, tasks)
        elif not block.children:
            out[tasks.bit_length() - 1] = block.members[0]
        else:
            self._assign_tree(self._tree(block), tasks, out)

    def _assign_tree(self, tree: _Tree, tasks: int, out: IntArray) -> None:
        if tree.block is not None:
            self._assign(tree.block, tasks, out)
        elif tree.pair is not None:
            first, second = tree.pair
            bits = _members(np.array([tasks]), tree.part.size)[0]
            subsets = np.array([bits[c].sum() for c in _choices(tree.part.size, first.part.size, False)])
            left = int(subsets[(first.part.values[subsets] + second.part.values[tasks - subsets]).argmin()])
            self._assign_tree(first, left, out)
            self._assign_tree(second, tasks - left, out)


def _inner(traffic: FloatArray) -> FloatArray:
    """Shape (2^n,): traffic between the members of each set."""
    inner = np.zeros(1)
    for i in range(len(traffic)):
        to_i = np.zeros(1)
        for j in range(i):
            to_i = np.concatenate([to_i, to_i + traffic[i, j]])
        inner = np.concatenate([inner, inner + to_i])
    return inner


def _members(sets: IntArray, size: int) -> IntArray:
    """Shape (sets, size): the bits of each set, one by one; all sets have ``size``."""
    out = np.empty((len(sets), size), dtype=np.int64)
    left = sets.copy()
    for i in range(size):
        out[:, i] = left & -left
        left -= out[:, i]
    return out


def _choices(size: int, chosen: int, halve: bool) -> list[list[int]]:
    """Return all ways to choose; of two halves that are alike, those with the first."""
    if halve:
        return [[0, *(i + 1 for i in rest)] for rest in combinations(range(size - 1), chosen - 1)]
    return [list(choice) for choice in combinations(range(size), chosen)]


def _nearest(distances: FloatArray, members: IntArray) -> float:
    a, b = np.triu_indices(len(members), 1)
    return float(distances[members[a], members[b]].min(initial=np.inf)) if len(a) else 0.0
