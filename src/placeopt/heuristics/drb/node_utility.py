"""A score of nodes by SC'17's utility (eq. 2): evaluated once for all nodes in the same state."""

from __future__ import annotations

import numpy as np

from placeopt.heuristics.candidates import Candidates
from placeopt.heuristics.drb.node import MachineKind, NodeNow, Weights
from placeopt.heuristics.drb.split import task_traffic
from placeopt.heuristics.scores.score import Score
from placeopt.problem import BoolArray, IntArray, Problem, State
from placeopt.problem.classes import group_by_key
from placeopt.terms.costs.utility import EQUATION_2, talks

Offer = tuple[tuple[int, ...], float]
"""GPUs of a node by index, in the order of the tasks, and the utility of a bundle on them."""

MOST_OFFERS = 1 << 18
"""Offers that are kept; beyond that they are made again."""


class NodeUtility(Score):
    """
    Minus the utility of a bundle on each node.

    Where it is one of several bundles of its job the path is left out: it depends on where the others go. Nodes of one
    kind of machine with the same idle GPUs and the same co-runners on the same GPUs are in one state; what such a node
    offers to equal requests on equal usable GPUs is kept, and what is not known yet is found for all nodes at once.
    """

    def __init__(self, problem: Problem) -> None:
        options = problem.options
        a = [problem.policy.weights[name] for name in EQUATION_2]
        a = a if any(a) else [1, 1, 1]
        self.weights: Weights = (a[0] / sum(a), a[1] / sum(a), a[2] / sum(a))
        self._kinds: dict[int, MachineKind] = {}
        needs = options.bundle_gpus, options.bundles == 1, options.milli, options.gpu_memory_mib, options.profile_number
        rows = np.column_stack((*needs, options.gpu_type_ok, self.option_features(problem)))
        self._request: list[int] = group_by_key(map(bytes, rows))[0]
        self._changes = np.zeros(problem.num_nodes, dtype=np.int64)  # of each node so far
        self._utility: dict[int, tuple[np.ndarray, IntArray]] = {}  # by request: of each node after so many changes
        self._states: dict[tuple[object, ...], int] = {}
        self._state = np.full(problem.num_nodes, -1, dtype=np.int64)  # number of each node's state, -1: to be looked up
        self._offers: dict[tuple[int, int, bytes], Offer] = {}  # by request, state and usable GPUs

    def changed(self, node: int) -> None:
        """Note that what runs on ``node`` changed."""
        self._state[node] = -1
        self._changes[node] += 1

    def option_features(self, problem: Problem) -> IntArray:
        """Return what an offer depends on beside the node and what a bundle needs of it."""
        options = problem.options
        talk = [talks(problem, option) for option in range(len(options))]
        return np.column_stack((problem.best_path, options.utilisation, problem.class_profile[options.job_class], talk))

    def __call__(self, candidates: Candidates, option: int, nodes: IntArray) -> np.ndarray:
        """Score ``nodes``, on all of which a bundle of ``option`` fits."""
        if not candidates.problem.options.gpus[option]:
            return np.zeros(len(nodes))
        request, number = self._request[option], len(self._changes)
        utility, after = self._utility.setdefault(request, (np.zeros(number), np.full(number, -1)))
        stale = nodes[after[nodes] < self._changes[nodes]]
        if len(stale):
            utility[stale] = [worth for _, worth in self._offered(candidates, option, stale)]
            after[stale] = self._changes[stale]
        return -utility[nodes]

    def gpus(self, candidates: Candidates, option: int, node: int, ranks: list[int]) -> tuple[int, ...] | None:
        """Return GPUs of the cluster for some of a job's ranks on a node; None without room."""
        problem, options, nodes = candidates.problem, candidates.problem.options, np.array([node])
        if not options.gpus[option]:
            return ()
        each = int(options.gpus[option])
        traffic = task_traffic(problem, option, ranks, each)
        if traffic is None and len(ranks) == options.bundle_workers[option]:
            found: tuple[int, ...] | None = self._offered(candidates, option, nodes)[0][0]
        else:
            now = self._now(candidates.state, option, nodes, candidates.usable(option, nodes))
            found = now.bipartitioned(each * len(ranks), traffic)
        return None if found is None else tuple([problem.first_gpu[node] + gpu for gpu in found])

    def _offered(self, candidates: Candidates, option: int, nodes: IntArray) -> list[Offer]:
        """Return what nodes with room for a bundle offer to it, whatever its graph of traffic."""
        state, offers, request = candidates.state, self._offers, self._request[option]
        for node in nodes[self._state[nodes] < 0].tolist():
            self._state[node] = self._states.setdefault(_state_of(state, node), len(self._states))
        if len(offers) >= MOST_OFFERS:
            offers.clear()
        usable = candidates.usable(option, nodes)
        keys = [
            (request, number, row.tobytes()) for number, row in zip(self._state[nodes].tolist(), usable, strict=True)
        ]
        missing: dict[int, dict[tuple[int, int, bytes], int]] = {}  # by kind of machine: a node of each
        for at, key in enumerate(keys):
            if key not in offers:
                missing.setdefault(int(state.problem.topology.node_machine[nodes[at]]), {})[key] = at
        for one in missing.values():
            rows = list(one.values())
            offers.update(zip(one, self._best(self._now(state, option, nodes[rows], usable[rows])), strict=True))
        return [offers[key] for key in keys]

    def _now(self, state: State, option: int, nodes: IntArray, usable: BoolArray) -> NodeNow:
        """Return nodes of one kind of machine as they are now."""
        machine = int(state.problem.topology.node_machine[nodes[0]])
        if machine not in self._kinds:
            self._kinds[machine] = MachineKind(state.problem, int(nodes[0]))
        return NodeNow(state, option, nodes, usable, self._kinds[machine], self.weights)

    def _best(self, nodes: NodeNow) -> list[Offer]:
        """Return what nodes with room offer to a whole bundle."""
        problem, option, kind = nodes.problem, nodes.option, nodes.kind
        count, best = int(problem.options.bundle_gpus[option]), int(problem.best_path[option])
        gpus = nodes.bipartitioned_alike(count)
        utility = nodes.worth(gpus[:, None])[:, 0]
        if problem.options.bundles[option] == 1:
            path = kind.distances[gpus[:, :, None], gpus[:, None]].sum(axis=(1, 2)) // 2
            longer = (path > best) & talks(problem, option)
            utility += self.weights[0] * np.divide(best, path, out=np.ones(len(path)), where=longer)
        return list(zip(map(tuple, gpus.tolist()), utility.tolist(), strict=True))


def _state_of(state: State, node: int) -> tuple[object, ...]:
    """Return a key of what runs on a node; equal keys, equal states."""
    problem = state.problem
    first, end = problem.first_gpu[node], problem.first_gpu[node + 1]
    jobs, machine = state.gpu_jobs[first:end], int(problem.topology.node_machine[node])
    if problem.policy.interference.model == "curve":
        return machine, jobs.tobytes(), state.gpu_utilisation[first:end].tobytes()
    beside = state.tenants[node].items() if state.tenants else ()
    held = [(profile, tuple([gpu - first for gpu in gpus]), count) for (profile, gpus), count in beside]
    return machine, (jobs == 0).tobytes(), frozenset(held)
