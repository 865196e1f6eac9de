"""A score of nodes by SC'17's utility (eq. 2): evaluated once for all nodes in the same state."""

from __future__ import annotations

import numpy as np

from placeopt.heuristics.candidates import Candidates
from placeopt.heuristics.drb.node import MachineKind, NodeNow, Weights
from placeopt.heuristics.drb.split import task_traffic
from placeopt.heuristics.scores.score import Score
from placeopt.problem import BoolArray, IntArray, Problem, State
from placeopt.terms.costs.utility import talks

Offer = tuple[tuple[int, ...], float]
"""GPUs of a node by index, in the order of the tasks, and the utility of a bundle on them."""

MOST_OFFERS = 1 << 18
"""Offers that are kept; beyond that they are made again."""


class NodeUtility(Score):
    """
    Minus the utility of a bundle on each node.

    Where it is one of several bundles of its job the path is left out: it depends on where the others go. Nodes of one
    kind of machine with the same idle GPUs and the same co-runners on the same GPUs are in one state; what such a node
    offers to equal requests on equal usable GPUs is kept.
    """

    def __init__(self, problem: Problem) -> None:
        stated = problem.policy.weights
        a = (stated.communication, stated.interference, stated.fragmentation)
        a = a if any(a) else (1, 1, 1)
        self.weights: Weights = (a[0] / sum(a), a[1] / sum(a), a[2] / sum(a))
        self._kinds: dict[int, MachineKind] = {}
        self._offers: dict[tuple[object, ...], Offer] = {}

    def option_features(self, problem: Problem) -> IntArray:
        """Return what an offer depends on beside the node and what a bundle needs of it."""
        options = problem.options
        talk = [talks(problem, option) for option in range(len(options))]
        return np.column_stack((problem.best_path, options.utilisation, problem.class_profile[options.job_class], talk))

    def __call__(self, candidates: Candidates, option: int, nodes: IntArray) -> np.ndarray:
        """Score ``nodes``, on all of which a bundle of ``option`` fits."""
        if not candidates.problem.options.gpus[option]:
            return np.zeros(len(nodes))
        usable = candidates.usable(option, nodes)
        rows = zip(nodes.tolist(), usable, strict=True)
        return -np.array([self._offer(candidates, option, node, row)[1] for node, row in rows])

    def gpus(self, candidates: Candidates, option: int, node: int, ranks: list[int]) -> tuple[int, ...] | None:
        """Return GPUs of the cluster for some of a job's ranks on a node; None without room."""
        problem, options = candidates.problem, candidates.problem.options
        if not options.gpus[option]:
            return ()
        usable, each = candidates.usable(option, np.array([node]))[0], int(options.gpus[option])
        traffic, found = task_traffic(problem, option, ranks, each), None
        if traffic is None and len(ranks) == options.bundle_workers[option]:
            found = self._offer(candidates, option, node, usable)[0]
        else:
            found = self._node(candidates.state, option, node, usable).bipartitioned(each * len(ranks), traffic)
        return None if found is None else tuple([problem.first_gpu[node] + gpu for gpu in found])

    def _offer(self, candidates: Candidates, option: int, node: int, usable: BoolArray) -> Offer:
        """Return what a node with room for a bundle on ``usable`` slots offers to it, whatever its graph of traffic."""
        state = candidates.state
        key = (candidates.shape(option), usable.tobytes(), *_state_of(state, node))
        offer = self._offers.get(key)
        if offer is None:
            if len(self._offers) >= MOST_OFFERS:
                self._offers.clear()
            offer = self._offers[key] = self._best(self._node(state, option, node, usable))
        return offer

    def _node(self, state: State, option: int, node: int, usable: BoolArray) -> NodeNow:
        machine = int(state.problem.topology.node_machine[node])
        if machine not in self._kinds:
            self._kinds[machine] = MachineKind(state.problem, node)
        return NodeNow(state, option, node, usable, self._kinds[machine], self.weights)

    def _best(self, node: NodeNow) -> Offer:
        """Return what a node with room offers to a whole bundle."""
        problem, option = node.problem, node.option
        gpus = node.bipartitioned(int(problem.options.bundle_gpus[option])) or ()
        utility, best = node.worth(gpus), int(problem.best_path[option])
        if problem.options.bundles[option] == 1:
            path = int(node.kind.distances[np.array(gpus)[:, None], gpus].sum()) // 2
            utility += self.weights[0] * (best / path if path > best and talks(problem, option) else 1.0)
        return gpus, utility


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
