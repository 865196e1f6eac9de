"""Signatures of nodes: nodes that look alike to a bundle have one number, and share what is cached about them."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from itertools import count
from weakref import WeakKeyDictionary

import numpy as np

from placeopt.problem import IntArray, Problem, State
from placeopt.problem.arrays import Tenant
from placeopt.terms.costs.interference import Interference
from placeopt.topology.cluster_topology import ClusterTopology

SPARE = 1000
"""Signatures and requests that are cached, beside four times the nodes; beyond that the cache starts again."""


@dataclass(frozen=True)
class NodeCandidate:
    """GPUs of a node by index, in the order of the tasks; path length; co-runner and fragmentation terms."""

    gpus: tuple[int, ...]
    path: int
    worth: float


class CandidateCache:
    """
    What is known of requests (what a bundle asks for) on node signatures, by the numbers of both.

    It only grows. A caller that finds it too large begins another one; other holders keep this one.
    """

    def __init__(self) -> None:
        self._next = count()
        self._numbers: dict[Hashable, int] = {}
        self.node_candidates: dict[tuple[int, int], NodeCandidate | None] = {}
        """By request and signature; None without room."""
        self.figures: dict[int, np.ndarray] = {}
        """By request: shape (signatures, 2), path and worth, NaN where unknown."""
        self.best_sets: dict[tuple[int, int], tuple[float, tuple[int, ...]]] = {}
        """Of ``Exhaustive``: utility and GPUs, by request and signature."""
        self.co_runner_levels: dict[int, tuple[IntArray, IntArray]] = {}
        """By signature: profiles of the k jobs that have one, and the level of each GPU to them (k, g)."""

    def __len__(self) -> int:
        """Requests and signatures that have a number."""
        return len(self._numbers)

    def number(self, thing: Hashable) -> int:
        """Return the number of a request or a signature, unique across threads."""
        known = self._numbers.get(thing)
        return self._numbers.setdefault(thing, next(self._next)) if known is None else known


_KEPT: WeakKeyDictionary[ClusterTopology, dict[Hashable, CandidateCache]] = WeakKeyDictionary()
"""Of clusters that stay: their topology is the same object in every round."""


def candidate_cache(problem: Problem, most: int) -> CandidateCache:
    """
    Return the cache for the problem's hardware under its policy and slowdowns; an empty one beyond ``most`` numbers.
    """
    kept = _KEPT.setdefault(problem.topology, {})
    key = (problem.policy.digest, problem.slowdown.tobytes())
    if key not in kept or len(kept[key]) > most:
        kept[key] = CandidateCache()
    return kept[key]


class NodeSignatures:
    """
    The signatures of all nodes, kept up to date, and the cache that goes with their numbers.

    A signature is the machine, type and free part of each GPU, and the co-runners that can be disturbed: profiles with
    GPUs. Where jobs slow each other by a curve of utilisation it is the jobs themselves, and nothing outlasts the
    round.
    """

    def __init__(self, state: State) -> None:
        problem = state.problem
        self.state = state
        self.by_curve = problem.policy.interference.model == "curve"
        self._curve_counts = self.by_curve and Interference().worst(problem) > 0
        self._machine: list[int] = problem.topology.node_machine.tolist()
        self._most = 4 * problem.num_nodes + SPARE
        self._sign_all()

    def _sign_all(self) -> None:
        problem = self.state.problem
        self.cache = CandidateCache() if self._curve_counts else candidate_cache(problem, self._most)
        whole = [array.tobytes() for array in self._arrays()]
        each = 8  # bytes of an integer
        number = self.cache.number
        self.number: IntArray = np.array(
            [
                number((machine, *(raw[each * start : each * end] for raw in whole), *self._co_runners(node)))
                for node, (machine, start, end) in enumerate(
                    zip(self._machine, problem.first_gpu[:-1], problem.first_gpu[1:], strict=True)
                )
            ],
            dtype=np.int64,
        )

    def _arrays(self) -> tuple[IntArray, ...]:
        state = self.state
        types = state.problem.gpu_type  # the machine's, but where look-ahead closes GPUs
        return types, state.gpu_free_milli, state.gpu_jobs, state.gpu_free_memory, state.gpu_utilisation

    def changed(self, node: int) -> None:
        """Note that what is free of a node changed."""
        here = slice(self.state.problem.first_gpu[node], self.state.problem.first_gpu[node + 1])
        signature = (self._machine[node], *(array[here].tobytes() for array in self._arrays()), *self._co_runners(node))
        self.number[node] = self.cache.number(signature)
        if len(self.cache) > self._most:
            self._sign_all()

    def is_shared(self, node: int) -> bool:
        """Return whether a job that others can disturb is on a node."""
        state = self.state
        if self.by_curve:
            return self._curve_counts and bool(state.node_jobs[node])
        return bool(state.tenants and state.tenants[node])

    def tenants(self, node: int) -> list[Tenant]:
        """Return profile and GPUs, by index, of each job on a node, in order; none where profiles do not count."""
        if self.by_curve or not self.is_shared(node):
            return []
        start = self.state.problem.first_gpu[node]
        return sorted(
            (profile, tuple(sorted(gpu - start for gpu in held)))
            for (profile, held), count in self.state.tenants[node].items()
            for _ in range(count)
        )

    def _co_runners(self, node: int) -> list[Tenant]:
        """Return the tenants; by the curve GPUs of each job, and which one it is if it may be slowed elsewhere too."""
        if not self._curve_counts:
            return self.tenants(node)
        problem, state = self.state.problem, self.state
        start, end = problem.first_gpu[node], problem.first_gpu[node + 1]
        held = []
        for job in state.node_jobs[node]:
            placement = state.placements[job]
            if placement is not None:
                here = tuple(sorted(g - start for g in placement.gpus if start <= g < end))
                held.append((-1 if len(set(placement.nodes)) == 1 else job, here))
        return sorted(held)

    def co_runner_levels(self, node: int) -> tuple[IntArray, IntArray]:
        """Return the profiles of the k jobs on a node that have one, and the level of each GPU to them ``(k, g)``."""
        number = int(self.number[node])
        known = self.cache.co_runner_levels.get(number)
        if known is None:
            problem = self.state.problem
            here = slice(problem.first_gpu[node], problem.first_gpu[node + 1])
            with_profile = [(profile, held) for profile, held in self.tenants(node) if profile >= 0]
            rows = np.full((len(with_profile), here.stop - here.start), 3)
            for row, (_, held) in zip(rows, with_profile, strict=True):
                gpus = list(held)
                for at, part in ((2, problem.gpu_socket[here]), (1, problem.gpu_switch[here])):
                    row[np.isin(part, part[gpus][part[gpus] >= 0])] = at
                row[gpus] = 0
            known = np.array([profile for profile, _ in with_profile], dtype=np.int64), rows
            self.cache.co_runner_levels[number] = known
        return known
