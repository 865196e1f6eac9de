"""
Exchange: bundles without a node are put onto nodes that are too full for them; swaps and moves then level the load.

Every step lowers the overload of all nodes together, each resource in units of what there is for a GPU. Nodes that
remain overloaded give up the items that are worth least; these enter again, one by one, where swaps make room.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from placeopt.heuristics.candidates import never
from placeopt.problem import IntArray

MAX_STEPS = 512
"""Swaps and moves of a call, some 2 ms each: rounds of 10,000 jobs on which CPU binds take 100 to 500 that help."""
MAX_REPAIRS = 16
"""Steps for one item that enters late; most need one or two."""
LEAST_GAIN = 2.0**-23
"""Of a step, in units: less is rounding."""
NO_GPU, SEVERAL = 0, -1
"""Kinds of items beside the free share of their one GPU: those without GPUs go anywhere, those of several stay."""


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
    allowed: frozenset[int]  # classes of nodes on which it may be


def exchange(
    node_class: IntArray,
    free: list[list[int]],
    idle: list[dict[int, int]],
    held: list[list[BundleItem]],
    unplaced: Sequence[BundleItem],
    unit: list[float],
    over: Callable[[], bool] = never,
) -> list[BundleItem]:
    """
    Return the items that have no node in the end, not always those that had none before.

    - ``node_class``, ``free``, ``idle``, ``held``: By node: its class, its free resources, its idle GPUs by free share,
      and the items on it; all but the first are updated.
    - ``unplaced``: Items without a node.
    - ``unit``: Of each resource, an amount that counts as one.
    - ``over``: Whether time is over; no more items are put anywhere then, and overloaded nodes give up items at once.
    """
    assignment = _Assignment(node_class, free, idle, held, unplaced, unit)
    new = range(len(assignment.items) - len(unplaced), len(assignment.items))
    left = [p for p in new if over() or not assignment.put(p)]
    assignment.level(over)
    for p in (*assignment.give_up().tolist(), *left):
        if not over():
            assignment.enter(p)
    free[:] = assignment.free.tolist()
    for n, items in enumerate(held):
        items[:] = [assignment.items[p] for p in np.flatnonzero(assignment.at == n)]
    return [assignment.items[p] for p in np.flatnonzero(assignment.at < 0)]


class _Assignment:
    """All items, and where they are; -1 is nowhere."""

    def __init__(
        self,
        node_class: IntArray,
        free: list[list[int]],
        idle: list[dict[int, int]],
        held: list[list[BundleItem]],
        unplaced: Sequence[BundleItem],
        unit: list[float],
    ) -> None:
        self.items = items = [item for on_node in held for item in on_node] + list(unplaced)
        self.at = np.full(len(items), -1, dtype=np.int64)
        self.at[: len(items) - len(unplaced)] = np.repeat(np.arange(len(held)), [len(on_node) for on_node in held])
        # (nodes, R); where running jobs hold more than there is, no exchange mends that: nothing is free there
        self.free = np.maximum(np.array(free, dtype=np.int64), 0)
        self._idle, self._class, self._unit = idle, node_class, np.array(unit)
        self._need = np.array([item.need for item in items], dtype=np.int64)  # (P, R)
        self._worth = np.array([item.worth for item in items], dtype=np.int64)
        kinds = [NO_GPU if not item.gpus else item.share if item.gpus == 1 else SEVERAL for item in items]
        self._kind = np.array(kinds, dtype=np.int64)
        self._of_kind = {k: np.flatnonzero(self._kind == k) for k in dict.fromkeys(kinds)}
        known = np.arange(int(node_class.max()) + 1)
        sets: dict[frozenset[int], int] = {}
        of_item = [sets.setdefault(item.allowed, len(sets)) for item in items]
        rows = [np.isin(known, list(allowed)) for allowed in sets]
        self._may = np.array(rows, dtype=bool).reshape(-1, len(known))[of_item]  # (P, classes)
        self._steps = 0

    def put(self, p: int) -> bool:
        """Put an item onto the node with idle GPUs for it where most is left, however little; whether there is one."""
        item, open_to = self.items[p], self._may[p, self._class]
        if item.gpus:
            open_to &= np.array([shares.get(item.share, 0) >= item.gpus for shares in self._idle], dtype=bool)
        nodes = np.flatnonzero(open_to)
        if not len(nodes):
            return False
        left = ((self.free[nodes] - self._need[p]) / self._unit).min(axis=1)
        n = self.at[p] = int(nodes[left.argmax()])
        self.free[n] -= self._need[p]
        if item.gpus:
            self._idle[n][item.share] -= item.gpus
        return True

    def level(self, over: Callable[[], bool]) -> None:
        """Take from every overloaded node what others have room for, as long as that lowers the overload of all."""
        before = -1
        while before < self._steps:  # a step may overload the other node, by less
            before, overload = self._steps, self._overload(self.free)
            for n in sorted(np.flatnonzero(overload).tolist(), key=lambda n: -overload[n]):
                while (self.free[n] < 0).any() and not over() and self._step(n):
                    pass

    def give_up(self) -> IntArray:
        """Take the least valuable items off overloaded nodes until none is, and return them, the dearest first."""
        taken: list[int] = []
        for n in np.flatnonzero(self._overload(self.free)).tolist():
            while (self.free[n] < 0).any():
                here = np.flatnonzero(self.at == n)
                remains = self._overload(self.free[n] + self._need[here])
                enough = remains == 0
                lost = np.where(enough, self._worth[here], np.inf) if enough.any() else remains
                taken.append(int(here[lost.argmin()]))
                self._take(taken[-1])
        items = np.array(taken, dtype=np.int64)
        dearest_first: IntArray = items[np.argsort(-self._worth[items], kind="stable")]
        return dearest_first

    def enter(self, p: int) -> None:
        """Put an item onto the node where most is left, and repair that node; undo it all where that fails."""
        at, free = self.at.copy(), self.free.copy()
        if not self.put(p):
            return
        n, before = int(self.at[p]), self._steps
        while (self.free[n] < 0).any() and self._steps < before + MAX_REPAIRS and self._step(n):
            pass
        if (self.free < 0).any():
            self._take(p, n)
            self.at, self.free = at, free

    def _overload(self, free: IntArray) -> np.ndarray:
        """Return how much more is taken than there is, in units, summed over the last axis."""
        lacking = np.zeros(free.shape[:-1])
        for r, unit in enumerate(self._unit.tolist()):  # NumPy takes its time to sum over an axis of two
            lacking += np.maximum(-free[..., r], 0) / unit
        return lacking

    def _gain(self, n: int, mine: IntArray, at: IntArray, others: IntArray | None = None) -> np.ndarray:
        """
        Shape (a, b): how much less overload there is if each of ``mine``, (a,), goes from ``n`` to each node of ``at``.

        ``others``: Shape (b,): the items that come in return; None for none.
        """
        before = self._overload(self.free[n]) + self._overload(self.free[at])
        gain = np.repeat(before[None, :], len(mine), axis=0)
        for r, unit in enumerate(self._unit.tolist()):
            given = self._need[mine, r][:, None] - (0 if others is None else self._need[others, r])
            after = np.maximum(-self.free[n, r] - given, 0)
            after = after + np.maximum(given - self.free[at, r], 0)  # moves: a column and a row
            gain -= after / unit
        gain[~self._may[mine][:, self._class[at]]] = -np.inf
        return gain

    def _step(self, n: int) -> bool:
        """Swap or move what lowers the overload most between node ``n`` and others; whether anything does."""
        if self._steps >= MAX_STEPS:
            return False
        here = np.flatnonzero(self.at == n)
        gain, p, other, node = LEAST_GAIN, -1, -1, -1
        for kind in np.unique(self._kind[here]).tolist():
            if kind == SEVERAL:
                continue
            mine = here[self._kind[here] == kind]
            found = self._best_swap(n, mine, self._others(kind, n))
            if found is not None and found[0] > gain:
                (gain, p, other), node = found, -1
            if kind == NO_GPU:
                moved = self._best_move(n, mine)
                if moved is not None and moved[0] > gain:
                    (gain, p, node), other = moved, -1
        if p < 0:
            return False
        self._steps += 1
        m = int(self.at[other]) if other >= 0 else node
        self._shift(p, m)
        if other >= 0:
            self._shift(other, n)
        return True

    def _others(self, kind: int, n: int) -> IntArray:
        """Return the items of a kind on other nodes that may be on ``n``."""
        items = self._of_kind[kind]
        at = self.at[items]
        others: IntArray = items[(at >= 0) & (at != n) & self._may[items, self._class[n]]]
        return others

    def _best_swap(self, n: int, mine: IntArray, others: IntArray) -> tuple[float, int, int] | None:
        if not len(others):
            return None
        at = self.at[others]
        gain = self._gain(n, mine, at, others)
        best = int(gain.argmax())
        return float(gain.flat[best]), int(mine[best // len(others)]), int(others[best % len(others)])

    def _best_move(self, n: int, mine: IntArray) -> tuple[float, int, int] | None:
        targets = np.delete(np.arange(len(self.free)), n)
        if not len(targets):
            return None
        gain = self._gain(n, mine, targets)
        best = int(gain.argmax())
        return float(gain.flat[best]), int(mine[best // len(targets)]), int(targets[best % len(targets)])

    def _shift(self, p: int, n: int) -> None:
        """Move an item to another node; its GPU, if any, changes hands with another item."""
        self.free[self.at[p]] += self._need[p]
        self.free[n] -= self._need[p]
        self.at[p] = n

    def _take(self, p: int, n: int | None = None) -> None:
        """Take an item off its node; ``n``: the node whose GPUs become idle, where swaps have moved it since."""
        item, at = self.items[p], int(self.at[p])
        self.at[p] = -1
        self.free[at] += self._need[p]
        if item.gpus:
            idle = self._idle[at if n is None else n]
            idle[item.share] = idle.get(item.share, 0) + item.gpus
