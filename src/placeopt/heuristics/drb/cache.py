"""What is remembered of bundles on single nodes, for as long as a cluster stays."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from itertools import count
from weakref import WeakKeyDictionary

import numpy as np

from placeopt.problem import IntArray, Problem
from placeopt.topology.cluster_topology import ClusterTopology


@dataclass(frozen=True)
class NodeCandidate:
    """GPUs of a node by index (in the order of the tasks), and what of the utility co-runners and free GPUs make up."""

    gpus: tuple[int, ...]
    path: int
    worth: float


class CandidateCache:
    """
    What is found out about questions (what a bundle asks for) on signatures (of nodes), by the numbers of both.

    It only grows. A caller that finds it too large begins another one; other holders keep this one.

    Attributes
    ----------
    node candidates
        By question and look; None without room.
    figures
        By question: shape ``(signatures, 2)``, path and worth by look, NaN where unknown.
    best_sets
        Of ``Exhaustive``: utility and GPUs by question and look.
    company
        By look: profiles of the k jobs that have one, and the level of each GPU to them ``(k, g)``.
    """

    def __init__(self) -> None:
        self._next = count()
        self._numbers: dict[Hashable, int] = {}
        self.node_candidates: dict[tuple[int, int], NodeCandidate | None] = {}
        self.figures: dict[int, np.ndarray] = {}
        self.best_sets: dict[tuple[int, int], tuple[float, tuple[int, ...]]] = {}
        self.slowdown_total: dict[int, tuple[IntArray, IntArray]] = {}

    def __len__(self) -> int:
        """Questions and signatures that have a number."""
        return len(self._numbers)

    def number(self, thing: Hashable) -> int:
        """Return the number of a question or a look; never that of another, whichever thread asks."""
        found = self._numbers.get(thing)
        return self._numbers.setdefault(thing, next(self._next)) if found is None else found


_KEPT: WeakKeyDictionary[ClusterTopology, dict[Hashable, CandidateCache]] = WeakKeyDictionary()
"""Of clusters that stay: their topology is the same object in every round."""


def candidate_cache(problem: Problem, most: int) -> CandidateCache:
    """Return what is known of the problem's hardware under its policy and slowdowns; nothing if that got too large."""
    kept = _KEPT.setdefault(problem.topology, {})
    key = (problem.policy.digest, problem.slowdown.tobytes())
    if key not in kept or len(kept[key]) > most:
        kept[key] = CandidateCache()
    return kept[key]
