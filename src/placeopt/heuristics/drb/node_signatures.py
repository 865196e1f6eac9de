"""What nodes look like to a bundle, as numbers: nodes of one number are one question."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from itertools import count
from weakref import WeakKeyDictionary

import numpy as np

from placeopt.problem import IntArray, Problem, State
from placeopt.problem.state import Tenant
from placeopt.terms.costs.interference import Interference
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


SPARE = 1000
"""Looks and questions that are remembered, beside four times the nodes; then all begins anew."""


class NodeSignatures:
    """
    The signatures of all nodes, kept up to date, and the answers that go with their numbers.

    A look is the machine, type and free part of each GPU, and who is where that others may disturb: profiles with GPUs.
    Where jobs slow each other by a curve of utilisation it is the jobs themselves, and nothing outlasts the round.

    Attributes
    ----------
    answers
        What is known by signatures; another object once it has grown too large.
    number
        Shape ``(N,)``: the look of every node.
    by_curve
        Whether slowdowns follow a curve of utilisation.
    """

    def __init__(self, state: State) -> None:
        problem = state.problem
        self.state = state
        self.by_curve = problem.policy.interference.model == "curve"
        self._curve_counts = self.by_curve and Interference().worst(problem) > 0
        self._machine: list[int] = problem.topology.node_machine.tolist()
        self._most = 4 * problem.num_nodes + SPARE
        self._look_at_all()

    def _look_at_all(self) -> None:
        problem = self.state.problem
        self.answers = CandidateCache() if self._curve_counts else candidate_cache(problem, self._most)
        whole = [array.tobytes() for array in self._arrays()]
        each = 8  # bytes of an integer
        number = self.answers.number
        self.number: IntArray = np.array(
            [
                number((machine, *(raw[each * start : each * end] for raw in whole), *self._who(node)))
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
        look = (self._machine[node], *(array[here].tobytes() for array in self._arrays()), *self._who(node))
        self.number[node] = self.answers.number(look)
        if len(self.answers) > self._most:
            self._look_at_all()

    def is_shared(self, node: int) -> bool:
        """Return whether somebody is on a node whom others may disturb."""
        state = self.state
        if self.by_curve:
            return self._curve_counts and bool(state.node_jobs[node])
        return bool(state.tenants and state.tenants[node])

    def tenants(self, node: int) -> list[Tenant]:
        """Return profile and GPUs, by index, of each job on a node, in order; of none where profiles do not count."""
        if self.by_curve or not self.is_shared(node):
            return []
        start = self.state.problem.first_gpu[node]
        return sorted(
            (profile, tuple(sorted(gpu - start for gpu in held)))
            for (profile, held), count in self.state.tenants[node].items()
            for _ in range(count)
        )

    def _who(self, node: int) -> list[Tenant]:
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

    def slowdown_total(self, node: int) -> tuple[IntArray, IntArray]:
        """Return the profiles of the k jobs on a node that have one, and the level of each GPU to them ``(k, g)``."""
        number = int(self.number[node])
        found = self.answers.slowdown_total.get(number)
        if found is None:
            problem = self.state.problem
            here = slice(problem.first_gpu[node], problem.first_gpu[node + 1])
            cached = [(profile, held) for profile, held in self.tenants(node) if profile >= 0]
            rows = np.full((len(cached), here.stop - here.start), 3)
            for row, (_, held) in zip(rows, cached, strict=True):
                gpus = list(held)
                for at, part in ((2, problem.gpu_socket[here]), (1, problem.gpu_switch[here])):
                    row[np.isin(part, part[gpus][part[gpus] >= 0])] = at
                row[gpus] = 0
            found = np.array([profile for profile, _ in cached], dtype=np.int64), rows
            self.answers.slowdown_total[number] = found
        return found
