"""Rooms and scores of one node at a time, in plain numbers: of few nodes that is quicker than arrays."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from placeopt.problem import IntArray, Problem, State

MOST_KNOWN = 50_000
"""Sets of GPU shares whose sum is kept; beyond that they are dropped."""


class NodeView:
    """
    What is free of a node: resources, GPUs, and what a score makes of these.

    ``free``: Of every resource. ``left``: Thousandths of every GPU, ascending, at least 0. ``idle``: Their sum in GPUs,
    as the arrays add it up. ``kept``: For the score: what does not depend on the option; None at first.
    """

    __slots__ = ("free", "idle", "kept", "left")

    def __init__(self, free: list[int], left: list[int], idle: float) -> None:
        self.free, self.left, self.idle = free, left, idle
        self.kept: Any = None


class ScalarScore(Protocol):
    """A score that also ranks single nodes in plain numbers: the very numbers that it returns in an array."""

    def of_node(self, problem: Problem, option: int) -> Callable[[NodeView], float]:
        """Return the score of a node on which a bundle of ``option`` fits."""


class _Asked(NamedTuple):
    """What a bundle of an option needs, and the score for it."""

    needs: list[tuple[int, int]]  # resource, amount
    gpus: int
    milli: int
    most: int
    limit: int
    score: Callable[[NodeView], float]


class SingleNodes:
    """
    Rooms and scores by node, as ``Candidates.evaluate`` returns them for arrays of nodes.

    It serves where nodes of a class differ in nothing but free resources and free shares of GPUs.
    """

    def __init__(self, state: State, score: ScalarScore, width: int) -> None:
        """Rank nodes of ``state``; none has more than ``width`` GPUs."""
        self._state, self._problem, self._score, self._width = state, state.problem, score, width
        self._views: dict[int, NodeView] = {}
        self._asked: dict[int, _Asked] = {}
        self._idle: dict[tuple[int, ...], float] = {}

    def forget(self, node: int) -> None:
        """Note that ``node`` changed."""
        self._views.pop(node, None)

    def evaluate(self, option: int, nodes: list[int], scores: np.ndarray, rooms: IntArray) -> None:
        """Write score and room of ``nodes``, on all of which a bundle fits while they are idle."""
        asked = self._asked.get(option) or self._ask(option)
        needs, gpus, milli, most, limit, score = asked
        views = self._views
        for node in nodes:
            view = views.get(node) or self._view(node)
            free, left, room = view.free, view.left, most
            for resource, amount in needs:
                times = free[resource] // amount
                if times < room:
                    room = times
            if gpus and room > 0:
                times = (len(left) - bisect_left(left, milli)) // gpus  # a job never holds a GPU twice
                if times < room:
                    room = times
            if room > 0:
                scores[node] = score(view)
                rooms[node] = room if room < limit else limit
            else:
                scores[node] = np.inf
                rooms[node] = 0

    def _ask(self, option: int) -> _Asked:
        options = self._problem.options
        workers = int(options.bundle_workers[option])
        asked = self._asked[option] = _Asked(
            needs=[(r, workers * amount) for r, amount in enumerate(options.demand[option].tolist()) if amount],
            gpus=int(options.bundle_gpus[option]),
            milli=int(options.milli[option]),
            most=int(options.bundles[option]),
            limit=int(options.workers_per_node[option]) // workers,
            score=self._score.of_node(self._problem, option),
        )
        return asked

    def _view(self, node: int) -> NodeView:
        first = self._problem.first_gpu
        left = self._state.gpu_free_milli[first[node] : first[node + 1]].tolist()
        if left and min(left) < 0:
            left = [max(milli, 0) for milli in left]
        key = tuple(left)
        idle = self._idle.get(key)
        if idle is None:
            if len(self._idle) >= MOST_KNOWN:
                self._idle.clear()
            row = np.zeros((1, self._width))  # as wide as the arrays, since the order of adding up matters
            row[0, : len(left)] = left
            idle = self._idle[key] = float(np.add.reduce(row / 1000, axis=1)[0])
        left.sort()
        view = self._views[node] = NodeView(self._state.node_free[node].tolist(), left, idle)
        return view
