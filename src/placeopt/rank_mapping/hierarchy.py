"""Distances between GPUs -> a tree of blocks, found from the matrix alone."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from placeopt.problem import IntArray
from placeopt.rank_mapping.case import FloatArray


@dataclass(frozen=True)
class Block:
    """
    A set of GPUs that look alike from outside: d(p, q) = ``outside[p]`` + f(q) for p in the block and q not.

    Three kinds: a single GPU; a *star*, whose children are ``weight`` away from its centre, so that two GPUs of
    different children are apart by the path through it; a *table*, whose distances inside follow no tree (a cube mesh).
    """

    members: tuple[int, ...]  # GPUs, ascending within a leaf or table
    children: tuple[Block, ...] = ()  # of a star, else empty
    weight: float = 0.0
    """Path weight to the centre of the star above: a multiple of 1/2 on trees with integer edges; below 0 only where
    distances break the triangle inequality."""
    outside: tuple[float, ...] = ()  # of a table: what each member adds to its way out; the least is 0
    closed: bool = False  # whether it is made of whole groups, so that no rank lies across its border

    @property
    def is_table(self) -> bool:
        """Whether only the matrix has the distances inside."""
        return not self.children and len(self.members) > 1


def hierarchy(distances: FloatArray, groups: IntArray) -> Block:
    """
    Decompose ``distances``, (n, n), into stars and tables; groups (nodes), numbers (n,), become blocks first.

    Returns the root, which holds all GPUs and has weight 0; at worst one table. Two items are *twins* if their
    distances to all others differ by a constant: then they hang on one star. Twins are gathered as long as there are
    any; where there are none, the smallest set of items that are near each other and look alike from outside becomes a
    table. On the metric of a tree this finds the tree (as in the reconstruction of evolutionary trees, by the
    four-point condition); whatever the matrix is, the blocks are exact. Cost ``O(c n^2)`` with c classes of twins; 0.05
    s for 64 GPUs, about 1 s for 512 without structure.
    """
    gathering = _Gathering(distances, groups)
    for labels in (groups, np.zeros(len(groups), dtype=np.int64)):
        if not gathering.run(labels):
            return Block(tuple(range(len(distances))), outside=(0.0,) * len(distances), closed=True)
    return gathering.items[0]


def tables_of(block: Block) -> list[Block]:
    """Return the tables in a hierarchy."""
    return [block] if block.is_table else [table for child in block.children for table in tables_of(child)]


class _Gathering:
    """Items (blocks without one above yet) and the distances between their centres."""

    def __init__(self, distances: FloatArray, groups: IntArray) -> None:
        self.groups, self.sizes = groups, np.bincount(groups)
        self.items = [Block((p,), closed=bool(self.sizes[groups[p]] == 1)) for p in range(len(distances))]
        self.matrix = distances.copy()  # (items, items)
        self.depth = np.zeros(len(distances))  # (n,) from GPU to the centre of its item

    def run(self, labels: IntArray) -> bool:
        """Gather until each label is one item; False if a label's items do not look alike from outside."""
        while True:
            label_of = np.array([labels[item.members[0]] for item in self.items])
            if len(np.unique(label_of)) == len(label_of):
                return True
            classes = _twins(self.matrix, label_of)
            if classes:
                self._contract([(members, self._star(members)) for members in classes])
                continue
            part = self._table_items(label_of)
            if part is None:
                return False
            self._contract([(part, self._table(part))])

    def _closed(self, members: tuple[int, ...]) -> bool:
        counts = np.bincount(self.groups[list(members)], minlength=len(self.sizes))
        return bool(((counts == 0) | (counts == self.sizes)).all())

    def _star(self, members: list[int]) -> Block:
        matrix, a, b = self.matrix, members[0], members[1]
        if len(matrix) == 2:
            ways = {a: matrix[a, b] / 2, b: matrix[a, b] / 2}
        else:
            q = members[2] if len(members) > 2 else next(i for i in range(len(matrix)) if i not in members)
            way_a = (matrix[a, b] + matrix[a, q] - matrix[b, q]) / 2
            ways = {a: way_a, **{i: matrix[a, i] - way_a for i in members[1:]}}
        for i in members:
            self.depth[list(self.items[i].members)] += ways[i]
        gpus = tuple(gpu for i in members for gpu in self.items[i].members)
        children = tuple(replace(self.items[i], weight=float(ways[i])) for i in members)
        return Block(gpus, children, closed=self._closed(gpus))

    def _table(self, part: list[int]) -> Block:
        gpus = tuple(sorted(gpu for i in part for gpu in self.items[i].members))
        item_of = {gpu: i for i in part for gpu in self.items[i].members}
        others = [j for j in range(len(self.matrix)) if j not in set(part)]
        out = np.zeros(len(gpus))
        if others:
            out = np.array([self.depth[gpu] + self.matrix[item_of[gpu], others[0]] for gpu in gpus])
            out -= out.min()
            lowest = gpus[int(out.argmin())]
            for j in others:  # the way from the block's centre, which is where its nearest members are
                way = self.depth[lowest] + self.matrix[item_of[lowest], j]
                self.matrix[part, j] = self.matrix[j, part] = way
        self.depth[list(gpus)] = out
        return Block(gpus, outside=tuple(out.tolist()), closed=self._closed(gpus))

    def _table_items(self, labels: IntArray) -> list[int] | None:
        """Return the smallest set of one label's items, joined by short distances, that looks alike from outside."""
        for label in np.unique(labels):
            mine = np.flatnonzero(labels == label)
            if len(mine) < 2:
                continue
            inner = self.matrix[np.ix_(mine, mine)]
            for part in _components(inner):
                if self._alike(mine[part]):
                    return [int(i) for i in mine[part]]
            return None
        return None

    def _alike(self, part: IntArray) -> bool:
        others = np.setdiff1d(np.arange(len(self.matrix)), part)
        ways = self.matrix[np.ix_(part, others)]
        return not len(others) or bool((ways - ways[0] == (ways - ways[0])[:, :1]).all())

    def _contract(self, parts: list[tuple[list[int], Block]]) -> None:
        gone = {i for members, _ in parts for i in members[1:]}
        for members, block in parts:
            first = members[0]
            if not block.is_table:
                way = block.children[0].weight
                keep = np.array([i for i in range(len(self.matrix)) if i not in set(members)], dtype=np.int64)
                self.matrix[first, keep] -= way
                self.matrix[keep, first] = self.matrix[first, keep]
            self.items[first] = block
        rest = [i for i in range(len(self.items)) if i not in gone]
        self.items = [self.items[i] for i in rest]
        self.matrix = self.matrix[np.ix_(rest, rest)]


def _twins(matrix: FloatArray, labels: IntArray) -> list[list[int]]:
    """Return classes of two or more items of one label whose distances to all others differ by a constant."""
    size = len(matrix)
    if size == 2:
        return [[0, 1]] if labels[0] == labels[1] else []
    out, free = [], np.ones(size, dtype=bool)
    for a in range(size):
        others = np.flatnonzero(free & (labels == labels[a]) & (np.arange(size) > a))
        if not free[a] or not len(others):
            continue
        gap = matrix[a][None, :] - matrix[others]  # (others, size)
        rows = np.arange(len(others))
        gap[:, a] = np.nan
        gap[rows, others] = np.nan
        twin = np.nanmax(gap, axis=1) == np.nanmin(gap, axis=1)
        if twin.any():
            members = [a, *others[twin].tolist()]
            free[members] = False
            out.append(members)
    return out


def _components(matrix: FloatArray) -> list[IntArray]:
    """Components of two or more items joined by distances up to each threshold, the smallest first."""
    seen: dict[tuple[int, ...], None] = {}
    for threshold in np.unique(matrix[np.triu_indices(len(matrix), 1)]):
        for members in components(matrix <= threshold):
            if len(members) > 1:
                seen[tuple(members.tolist())] = None
    return [np.array(members) for members in sorted(seen, key=len)]


def components(near: np.ndarray) -> list[IntArray]:
    """Components of the graph with the given (symmetric, Boolean) adjacency, each ascending."""
    left = np.ones(len(near), dtype=bool)
    out = []
    while left.any():
        reached = np.zeros(len(near), dtype=bool)
        reached[left.argmax()] = True
        frontier = reached
        while frontier.any():
            frontier = near[frontier].any(axis=0) & ~reached
            reached = reached | frontier
        out.append(np.flatnonzero(reached))
        left &= ~reached
    return out
