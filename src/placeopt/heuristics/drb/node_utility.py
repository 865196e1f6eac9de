"""A score of nodes by SC'17's utility (eq. 2): evaluated once for all nodes in the same state."""

from __future__ import annotations

import numpy as np

from placeopt.heuristics.candidates import Candidates
from placeopt.heuristics.drb.machine import MachineKind, utility_weights
from placeopt.heuristics.drb.node_batch import NodeBatch
from placeopt.problem import BoolArray, IntArray, Problem, State
from placeopt.problem.classes import group_by_key
from placeopt.terms.costs.utility import talks

Offer = tuple[tuple[int, ...], float, float]
"""GPUs of a node by index, in the order of the tasks; path term of the utility; co-runner and fragmentation terms."""

MOST_OFFERS = 1 << 20
"""Offers kept; beyond that they are all dropped."""


class NodeUtility:
    """
    A score (`placeopt.heuristics.candidates.Score`): minus the utility of a bundle on each node.

    Where it is one of several bundles of its job the path is left out: it depends on where the others go. Nodes of one
    kind of machine with the same idle GPUs and the same co-runners on the same GPUs are in one state; what such a node
    offers to equal requests on equal usable GPUs is kept.
    """

    def __init__(self, problem: Problem) -> None:
        options, self.weights = problem.options, utility_weights(problem)
        self._asked = np.column_stack(
            (
                *(options.gpus, options.bundle_workers, options.bundles == 1, problem.best_path, options.utilisation),
                problem.class_profile[options.job_class],
                [talks(problem, option) for option in range(len(options))],
            )
        )  # (O, 7): what an offer depends on beside the node
        self._request = group_by_key(row.tobytes() for row in self._asked)[0]
        self._kinds: dict[int, MachineKind] = {}
        self._states: dict[object, int] = {}
        self._offers: dict[tuple[int, int, bytes], Offer] = {}

    def option_features(self, problem: Problem) -> IntArray:
        """Return what a score depends on beside the node."""
        del problem
        return self._asked

    def __call__(self, candidates: Candidates, option: int, nodes: IntArray) -> np.ndarray:
        """Score ``nodes``, on all of which a bundle of ``option`` fits."""
        if not candidates.problem.options.gpus[option]:
            return np.zeros(len(nodes))
        whole = candidates.problem.options.bundles[option] == 1
        offers, of_node = self._offered(candidates, option, nodes, candidates.usable(option, nodes))
        return -np.array([whole * path + worth for _, path, worth in offers])[of_node]

    def gpus(self, candidates: Candidates, option: int, node: int, ranks: list[int]) -> tuple[int, ...] | None:
        """Return GPUs of the cluster for some of a job's ranks on a node; None without room."""
        problem, options, here = candidates.problem, candidates.problem.options, np.array([node])
        if not options.gpus[option]:
            return ()
        usable, edges = candidates.usable(option, here), problem.class_communication[options.job_class[option]].edges
        found: tuple[int, ...] | None
        if len(ranks) == options.bundle_workers[option] and not edges:
            found = self._offered(candidates, option, here, usable)[0][0][0]
        else:
            (found,) = self._batch(candidates.state, option, here, usable).bipartitioned(ranks)
        return None if found is None else tuple([problem.first_gpu[node] + gpu for gpu in found])

    def _offered(
        self, candidates: Candidates, option: int, nodes: IntArray, usable: BoolArray
    ) -> tuple[list[Offer], list[int]]:
        """Return the offers of nodes with room for a bundle on ``usable`` slots, equal ones once, and each node's."""
        request, states = self._request[option], candidates.kept(self._numbered, nodes).astype(np.int64)
        if len(self._offers) > MOST_OFFERS:
            self._offers.clear()
        keys = [(request, *key) for key in zip(states.tolist(), map(np.ndarray.tobytes, usable), strict=True)]
        of_node, first = group_by_key(keys)
        found = [self._offers.get(keys[i]) for i in first]
        new = np.array([i for i, offer in zip(first, found, strict=True) if offer is None], dtype=np.int64)
        kind = candidates.problem.topology.node_machine[nodes[new]]
        for machine in np.unique(kind):
            here = new[kind == machine]
            made = self._rated(self._batch(candidates.state, option, nodes[here], usable[here]))
            self._offers.update(zip([keys[i] for i in here.tolist()], made, strict=True))
        return [self._offers[keys[i]] for i in first], of_node

    def _batch(self, state: State, option: int, nodes: IntArray, usable: BoolArray) -> NodeBatch:
        """Return nodes of one kind for a bundle."""
        machine = int(state.problem.topology.node_machine[nodes[0]])
        kind = self._kinds.get(machine) or self._kinds.setdefault(machine, MachineKind(state.problem, int(nodes[0])))
        return NodeBatch(state, option, nodes, usable, kind, self.weights)

    def _rated(self, batch: NodeBatch) -> list[Offer]:
        """Return what each node offers to a whole bundle."""
        ranks = list(range(int(batch.problem.options.bundle_workers[batch.option])))
        found = [gpus for gpus in batch.bipartitioned(ranks) if gpus is not None]  # there is room on all of them
        near, worth = batch.utility(np.array(found)[:, None])
        return list(zip(found, near[:, 0].tolist(), worth[:, 0].tolist(), strict=True))

    def _numbered(self, candidates: Candidates, nodes: IntArray) -> np.ndarray:
        """Number the states of nodes; equal numbers, equal states."""
        state, start, machine = candidates.state, candidates.problem.first_gpu, candidates.problem.topology.node_machine
        numbers, by_curve = [], candidates.problem.policy.interference.model == "curve"
        for node in nodes.tolist():
            jobs, first = state.gpu_jobs[start[node] : start[node + 1]], start[node]
            beside = state.tenants[node].items() if state.tenants else ()
            key = (
                int(machine[node]),
                jobs.tobytes() if by_curve else (jobs == 0).tobytes(),
                state.gpu_utilisation[first : start[node + 1]].tobytes() if by_curve else None,
                frozenset(
                    [(profile, tuple([gpu - first for gpu in gpus]), count) for (profile, gpus), count in beside]
                ),
            )
            numbers.append(self._states.setdefault(key, len(self._states)))
        return np.array(numbers, dtype=np.float64)
