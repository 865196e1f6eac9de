"""
Exchange: a bundle without a node is put onto one that is too full for it, which then gives heavy ones for lighter.

Every exchange leaves the other node within its capacity, and the overloaded one less overloaded. If no exchange helps
any more, the node gives up the bundle that is worth least.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from placeopt.problem import IntArray

MAX_EXCHANGES = 12
"""For one bundle; most need one or two."""


@dataclass(eq=False, slots=True)
class BundleItem:
    """What one node takes together: ``gpus`` GPUs of free share ``share``, and the jobs on them, with their options."""

    gpus: int
    share: int
    jobs: list[tuple[int, int]]
    need: list[int]
    weight: float  # largest share of a resource, of what there is for a GPU
    worth: int  # value of its jobs
    home: int  # class of nodes for which it was made
    allowed: IntArray  # classes of nodes on which it may be


def exchange(
    node_class: IntArray,
    free: list[list[int]],
    idle: list[dict[int, int]],
    held: list[list[BundleItem]],
    unplaced: Sequence[BundleItem],
    unit: list[float],
) -> list[BundleItem]:
    """
    Return the pieces that have no node in the end, not always those that had none before.

    Nodes for bundles of one GPU are found by exchanging others of the same free share, one for one. ``node_class``,
    ``free`` resources, ``idle`` GPUs by free share and ``held`` pieces are by node; all but the first are updated. Of
    ``unplaced`` those of one GPU are tried in order. ``unit``: of each resource, an amount that counts as one.
    """
    solution = _Assignment(node_class, free, [piece for pieces in held for piece in pieces] + list(unplaced), unit)
    solution.at[: sum(map(len, held))] = np.repeat(np.arange(len(held)), [len(pieces) for pieces in held])
    for p in range(len(solution.pieces) - len(unplaced), len(solution.pieces)):
        piece = solution.pieces[p]
        if piece.gpus != 1:
            continue
        nodes = np.array([n for n in range(len(held)) if idle[n].get(piece.share, 0)], dtype=np.int64)
        nodes = nodes[solution.may[p, solution.node_class[nodes]]]
        if not len(nodes):
            continue
        left = (solution.free[nodes] - solution.need[p]) / solution.unit
        n = int(nodes[left.min(axis=1).argmax()])
        if solution.enter(p, n):
            idle[n][piece.share] -= 1
    free[:] = solution.free.tolist()
    for n, pieces in enumerate(held):
        pieces[:] = [solution.pieces[p] for p in np.flatnonzero(solution.at == n)]
    return [solution.pieces[p] for p in np.flatnonzero(solution.at < 0)]


class _Assignment:
    """All pieces, and where they are; -1 is nowhere."""

    def __init__(
        self, node_class: IntArray, free: list[list[int]], pieces: list[BundleItem], unit: list[float]
    ) -> None:
        self.pieces = pieces
        self.node_class = node_class
        self.may = np.zeros((len(pieces), int(node_class.max()) + 1), dtype=bool)  # (P, classes)
        for p, piece in enumerate(pieces):
            self.may[p, piece.allowed[piece.allowed < self.may.shape[1]]] = True
        self.free = np.array(free, dtype=np.int64)  # (nodes, R)
        self.unit = np.array(unit)
        self.at = np.full(len(pieces), -1, dtype=np.int64)
        self.need = np.array([piece.need for piece in pieces], dtype=np.int64)  # (P, R)
        self.kind = np.array([piece.share if piece.gpus == 1 else -1 for piece in pieces], dtype=np.int64)
        self.worth = np.array([piece.worth for piece in pieces], dtype=np.int64)

    def enter(self, p: int, n: int) -> bool:
        """Put piece ``p``, which has no node, onto node ``n`` and repair it; whether one piece more has a node."""
        self._put(p, n)
        done: list[tuple[int, int]] = []
        while (self.free[n] < 0).any() and len(done) < MAX_EXCHANGES:
            pair = self._best_pair(n, self.kind[p])
            if pair is None:
                break
            self._swap(*pair)
            done.append(pair)
        if (self.free[n] >= 0).all():
            return True
        here = np.flatnonzero((self.at == n) & (self.kind == self.kind[p]))
        enough = here[(self.free[n] + self.need[here] >= 0).all(axis=1)]
        least = int(enough[self.worth[enough].argmin()]) if len(enough) else p
        if not len(enough) or self.worth[least] >= self.worth[p]:
            for heavy, other in reversed(done):
                self._swap(heavy, other)
            least = p
        self._take(least)
        return False

    def _best_pair(self, n: int, kind: int) -> tuple[int, int] | None:
        """The exchange after which node ``n`` is least overloaded, if it is less than now."""
        mine = np.flatnonzero((self.at == n) & (self.kind == kind))
        others = np.flatnonzero((self.at >= 0) & (self.at != n) & (self.kind == kind))
        if not len(others):
            return None
        given = self.need[mine][:, None, :] - self.need[others][None, :, :]
        able = (given <= self.free[self.at[others]][None, :, :]).all(axis=2)
        overload = (np.maximum(-(self.free[n] + given), 0) / self.unit).sum(axis=2)
        able &= self.may[others, self.node_class[n]][None, :]
        able &= self.may[mine][:, self.node_class[self.at[others]]]
        overload[~able] = np.inf
        best = int(overload.argmin())
        if overload.flat[best] >= (np.maximum(-self.free[n], 0) / self.unit).sum():
            return None
        return int(mine[best // len(others)]), int(others[best % len(others)])

    def _swap(self, heavy: int, other: int) -> None:
        a, b = int(self.at[heavy]), int(self.at[other])
        self._take(heavy)
        self._take(other)
        self._put(heavy, b)
        self._put(other, a)

    def _put(self, p: int, n: int) -> None:
        self.at[p] = n
        self.free[n] -= self.need[p]

    def _take(self, p: int) -> None:
        self.free[self.at[p]] += self.need[p]
        self.at[p] = -1
