"""Candidates that stay: what is known of a node holds for every node that looks the same."""

from __future__ import annotations

import numpy as np

from placeopt.heuristics import SCORES, Candidates, Stranding
from placeopt.heuristics.candidates import FloatArray
from placeopt.problem import IntArray, State

BY_POSITION = frozenset({"first_fit"})
"""Scores that depend on where a node stands in the file, so not on its looks alone."""

MOST_KNOWN = 200_000
"""Looks that are remembered (some 100 bytes each); when there are more, all are forgotten."""

FEW = 64
"""Up to so many nodes are looked up one by one; of more, arrays are faster."""

Looks = tuple[int, bytes]


class AlikeCandidates(Candidates):
    """
    ``Candidates`` for as long as a cluster stays.

    Between two decisions a few nodes change, and mostly into something that some node was before: then score, room and
    GPUs are looked up by the node's looks (its class, and what is free of it) instead of being worked out.
    """

    remembers = False

    def __init__(self, state: State, score: str, counts: IntArray) -> None:
        """``counts``, shape (K,): jobs of each class, for scores that go by the mix of jobs."""
        problem = state.problem
        super().__init__(state, Stranding(problem, counts) if score == "stranding" else SCORES[score](problem))
        self._by_position = score in BY_POSITION
        self._judged: dict[tuple[int, Looks], tuple[float, int]] = {}
        self._chosen: dict[tuple[int, Looks], tuple[int, ...]] = {}

    def changed(self, node: int) -> None:
        """Note that the free capacity of ``node`` changed."""
        super().changed(node)
        if len(self._journal) > 4 * self.problem.num_nodes + 1000:  # what fell behind that far is worked out anew
            self._journal.clear()
            self._known.clear()

    def judge(self, option: int, nodes: IntArray) -> tuple[FloatArray, IntArray]:
        """Return scores and rooms, looked up where a node looks like one that was seen before."""
        if self._by_position or len(nodes) > FEW:
            return super().judge(option, nodes)
        keys = [(option, self.looks(node)) for node in nodes.tolist()]
        new = {key: i for i, key in enumerate(keys) if key not in self._judged}
        if new:
            if len(self._judged) > MOST_KNOWN:
                self._judged.clear()
                new = {key: i for i, key in enumerate(keys)}
            scores, rooms = super().judge(option, nodes[list(new.values())])
            self._judged.update(zip(new, zip(scores.tolist(), rooms.tolist(), strict=True), strict=True))
        found = [self._judged[key] for key in keys]
        return np.array([score for score, _ in found]), np.array([room for _, room in found], dtype=np.int64)

    def choose_gpus(self, option: int, node: int, held: frozenset[int] = frozenset()) -> tuple[int, ...]:
        """Return the GPUs that one bundle gets on ``node``, none of them in ``held``; fewer than needed: no room."""
        if held:
            return super().choose_gpus(option, node, held)
        key = (option, self.looks(node))
        first = int(self.problem.node_gpu_start[node])
        local = self._chosen.get(key)
        if local is None:
            if len(self._chosen) > MOST_KNOWN:
                self._chosen.clear()
            local = self._chosen[key] = tuple(gpu - first for gpu in super().choose_gpus(option, node))
        return tuple([first + index for index in local])

    def looks(self, node: int) -> Looks:
        """Return all that rules and scores of a single node see of it: equal for nodes that are alike now."""
        state, problem = self.state, self.problem
        gpus = slice(problem.node_gpu_start[node], problem.node_gpu_start[node + 1])
        free = (
            state.node_free[node],
            state.gpu_free_milli[gpus],
            state.gpu_free_memory[gpus],
            state.gpu_jobs[gpus],
            state.gpu_utilisation[gpus],
        )
        return int(problem.node_class[node]), b"".join([part.tobytes() for part in free])
