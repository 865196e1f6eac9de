"""What one node offers a bundle of an option: the GPUs it would get there, and how well it would run."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np

from placeopt.heuristics.candidates import Candidates
from placeopt.heuristics.drb.hardware_tree import machine_tree
from placeopt.heuristics.drb.node_signatures import NodeCandidate, NodeSignatures
from placeopt.heuristics.drb.split import Inside, eq5
from placeopt.problem import IntArray, Move, Placement, State
from placeopt.terms.costs.interference import Interference
from placeopt.terms.costs.utility import talks


@dataclass(frozen=True)
class Preference:
    """Weights of path, interference and fragmentation in eq. 2; thirds where the policy states none."""

    path: float
    interference: float
    fragmentation: float


def preference(state: State) -> Preference:
    """Return the policy's weights, summing to 1."""
    weights = state.problem.policy.weights
    stated = (weights.communication, weights.interference, weights.fragmentation)
    a, b, c = stated if any(stated) else (1, 1, 1)
    return Preference(a / (a + b + c), b / (a + b + c), c / (a + b + c))


class NodeCandidates:
    """Bundles on single nodes, cached by request and node signature."""

    def __init__(self, state: State, candidates: Candidates) -> None:
        self.state, self.candidates = state, candidates
        self.preference = preference(state)
        self.signatures = NodeSignatures(state)
        self.sockets = _socket_in_node(state)
        self._interference = Interference()
        self._requests: dict[int, Hashable] = {}

    def changed(self, node: int) -> None:
        """Note that what is free of a node changed."""
        self.signatures.changed(node)

    def request(self, option: int) -> int:
        """Return a number shared by the options that ask for the same and depend on the same."""
        if option not in self._requests:
            problem, options = self.state.problem, self.state.problem.options
            kind = int(options.job_class[option])
            communication = problem.class_communication[kind]
            self._requests[option] = (
                int(options.gpus[option]),
                int(options.workers[option]),
                int(options.bundle_workers[option]),
                options.grants[option],
                int(options.gpu_memory_mib[option]),
                options.gpu_profile[option],
                options.gpu_type_ok[option].tobytes(),
                int(problem.class_profile[kind]),
                int(problem.best_path[option]),
                talks(problem, option),
                communication if communication.edges else None,
            )
        return self.signatures.cache.number(self._requests[option])

    def at(self, job: int, option: int, nodes: IntArray) -> tuple[np.ndarray, np.ndarray]:
        """Return path and worth of a bundle on each of ``nodes``, all of which have room for it."""
        request, cache = self.request(option), self.signatures.cache
        numbers = self.signatures.number[nodes]
        cached = cache.figures.get(request, np.zeros((0, 2)))
        if len(cached) <= numbers.max(initial=-1):
            grown = np.full((2 * len(cache), 2), np.nan)
            grown[: len(cached)] = cached
            cached = cache.figures[request] = grown
        unknown = np.isnan(cached[numbers, 0])
        for number, first in zip(*np.unique(numbers[unknown], return_index=True), strict=True):
            node_candidate = self.node_candidate(job, option, int(nodes[np.flatnonzero(unknown)[first]]))
            cached[number] = (np.inf, -np.inf)
            if node_candidate is not None:
                cached[number] = (node_candidate.path, node_candidate.worth)
        return cached[numbers, 0], cached[numbers, 1]

    def node_candidate(self, job: int, option: int, node: int) -> NodeCandidate | None:
        """Return what a bundle of one of the option's jobs, first ranks first, gets on a node; None without room."""
        cached = self.signatures.cache.node_candidates
        key = (self.request(option), int(self.signatures.number[node]))
        if key not in cached:
            workers = int(self.state.problem.options.bundle_workers[option])
            cached[key] = self._find(job, option, node, list(range(workers)))
        return cached[key]

    def gpus(self, job: int, option: int, node: int, ranks: list[int]) -> tuple[int, ...] | None:
        """Return GPUs of the cluster for some of a job's ranks on a node; None without room."""
        options = self.state.problem.options
        if len(ranks) == options.bundle_workers[option] and not self._edges(option):
            node_candidate = self.node_candidate(job, option, node)
        else:
            node_candidate = self._find(job, option, node, ranks)
        start = self.state.problem.first_gpu[node]
        return None if node_candidate is None else tuple(start + gpu for gpu in node_candidate.gpus)

    def _edges(self, option: int) -> bool:
        problem = self.state.problem
        return bool(problem.class_communication[problem.options.job_class[option]].edges)

    def _find(self, job: int, option: int, node: int, ranks: list[int]) -> NodeCandidate | None:
        problem, state = self.state.problem, self.state
        need = int(problem.options.gpus[option]) * len(ranks)
        if not need:
            return NodeCandidate((), 0, self.preference.interference + self.preference.fragmentation)
        start = problem.first_gpu[node]
        usable = np.flatnonzero(self.candidates.usable(option, np.array([node]))[0])
        if len(usable) < need:
            return None
        distances = problem.topology.distance[int(problem.topology.node_machine[node])]
        excess = self._excess(job, option, node, usable)
        here = slice(start, problem.first_gpu[node + 1])
        may, free, sockets = np.zeros(len(distances), dtype=bool), state.gpu_jobs[here] == 0, self.sockets[here]
        may[usable] = True
        inside = Inside(
            machine_tree(distances), distances, may, free, sockets, excess, self.preference.path, self.worth
        )
        gpu_of_task: dict[int, int] = {}
        if not inside.drb(list(range(need)), traffic(state, option, ranks), 0, gpu_of_task, np.random.default_rng(0)):
            return None
        gpus = tuple(gpu_of_task[task] for task in range(need))
        path = int(distances[np.ix_(gpus, gpus)].sum()) // 2
        more = self._slowdown(job, option, node, [gpus])[0]
        return NodeCandidate(gpus, path, self.worth(more, eq5(sockets, free, gpus)))

    def worth(self, excess: float, free: float) -> float:
        """Return the terms of eq. 2 for slowdowns suffered and caused (thousandths) and for what stays free (eq. 5)."""
        return self.preference.interference * 1000 / (1000 + excess) + self.preference.fragmentation / (1 + free)

    def _excess(self, job: int, option: int, node: int, usable: IntArray) -> np.ndarray:
        """Shape (GPUs of the node,): thousandths by which a task on each usable GPU slows and is slowed."""
        start, end = self.state.problem.first_gpu[node], self.state.problem.first_gpu[node + 1]
        out = np.zeros(end - start)
        if self.signatures.is_shared(node):
            out[usable] = self._slowdown(job, option, node, [(gpu,) for gpu in usable.tolist()])
        return out

    def _slowdown(self, job: int, option: int, node: int, sets: list[tuple[int, ...]]) -> list[float]:
        """Return what a job suffers and causes, in thousandths, on each of some sets of a node's GPUs."""
        problem, state = self.state.problem, self.state
        if not self.signatures.is_shared(node):
            return [0.0] * len(sets)
        if self.signatures.by_curve:
            start, node_of = problem.first_gpu[node], (node,)
            moves = [Move(job, Placement(option, node_of, tuple(start + g for g in gpus))) for gpus in sets]
            return [float(max(0, self._interference.delta(state, move))) for move in moves]
        worst = problem.policy.interference.model == "worst"
        out = []
        for gpus in sets:
            suffered, caused = self.pairs(job, node, gpus)
            out.append(float(caused.sum() + (suffered.max(initial=0) if worst else suffered.sum())))
        return out

    def pairs(self, job: int, node: int, gpus: tuple[int, ...]) -> tuple[IntArray, IntArray]:
        """Return by how much each job on a node that has a profile slows a job on some GPUs of it, and is slowed."""
        problem = self.state.problem
        profile = int(problem.class_profile[problem.job_class[job]])
        profiles, level = self.signatures.co_runner_levels(node)
        if profile < 0:
            return np.zeros_like(profiles), np.zeros_like(profiles)
        nearest = level[:, list(gpus)].min(axis=1)
        return problem.slowdown[nearest, profile, profiles], problem.slowdown[nearest, profiles, profile]


def _socket_in_node(state: State) -> IntArray:
    """Shape (G,): socket of every GPU, numbered from 0 in each node; 0 where there is none."""
    problem = state.problem
    first = np.full(problem.num_nodes, np.iinfo(np.int64).max)
    inside = problem.gpu_socket >= 0
    np.minimum.at(first, problem.gpu_node[inside], problem.gpu_socket[inside])
    return np.where(inside, problem.gpu_socket - first[problem.gpu_node] + 1, 0)


def traffic(state: State, option: int, ranks: list[int]) -> IntArray | None:
    """Shape (k, k): weights between the GPUs of some ranks, worker after worker; None where all pairs talk alike."""
    problem = state.problem
    communication = problem.class_communication[problem.options.job_class[option]]
    if not communication.edges:
        return None
    between = rank_traffic(state, option)[np.ix_(ranks, ranks)] + np.eye(len(ranks), dtype=np.int64) * int(
        communication.weight
    )
    gpus = int(problem.options.gpus[option])
    return np.kron(between, np.ones((gpus, gpus), dtype=np.int64))


def rank_traffic(state: State, option: int) -> IntArray:
    """Shape (workers, workers): weights of the edges between a job's workers."""
    problem = state.problem
    workers = int(problem.options.workers[option])
    out = np.zeros((workers, workers), dtype=np.int64)
    for edge in problem.class_communication[problem.options.job_class[option]].edges:
        a, b = edge.ranks
        if max(a, b) < workers:
            out[a, b] = out[b, a] = edge.weight
    return out
