"""Rank nodes by what a job adds to the cost level there: communication inside the node, and free GPUs beside it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placeopt.heuristics.candidates import Candidates, closest
from placeopt.problem import IntArray, Problem, State
from placeopt.terms.costs.communication import Communication
from placeopt.terms.costs.fragmentation import Fragmentation
from placeopt.terms.objective import weight_of, weighted_costs


@dataclass(frozen=True)
class _Choice:
    """GPUs of a node, numbered from its first; what they cost inside the node, and how many of them were idle."""

    cost: int
    slots: tuple[int, ...]
    idle: int


class MarginalCost:
    """
    The least communication and fragmentation, weighted as the policy has them, that a bundle adds on a node.

    GPUs are tried in few sets: the closest of all, of the idle ones, and of either inside each socket. Nodes whose GPUs
    have equal room share one choice; domains above a node count by how many idle GPUs the choice takes, idle ones as if
    others filled them. Interference is left out: it depends on who is there, and is priced with the placement.
    """

    def __init__(self, problem: Problem) -> None:
        weighted = weighted_costs(problem)
        self._problem = problem
        self._path_price, self._gpu_price = weight_of(weighted, Communication), weight_of(weighted, Fragmentation)
        self._known: dict[tuple[int, int, int, bytes], _Choice] = {}
        nodes_of = [np.unique(np.stack((level.gpu_to_domain, problem.gpu_node)), axis=1)[0] for level in problem.levels]
        inner = [len(np.unique(at[at >= 0])) == (at >= 0).sum() for at in nodes_of]  # each domain is part of one node
        numbers = range(len(problem.levels))
        self._inner = [number for number in numbers if inner[number]]
        self._outer = [number for number in numbers if not inner[number]]
        self._weight = [
            0 if communication.edges else self._path_price * int(communication.weight)
            for communication in problem.class_communication
        ]
        machine = {id(distance): i for i, distance in enumerate(problem.topology.distance)}
        of_machine = [machine[id(distance)] for distance in problem.topology.distance]
        self._machine = [of_machine[m] for m in problem.topology.node_machine.tolist()]

    def option_features(self, problem: Problem) -> IntArray:
        """Return the traffic weight of each option's jobs."""
        weights: IntArray = np.array(self._weight, dtype=np.int64)[problem.options.job_class][:, None]
        return weights

    def __call__(self, candidates: Candidates, option: int, nodes: IntArray) -> np.ndarray:
        """Score ``nodes``, on all of which a bundle of ``option`` fits."""
        choices = self._choices(candidates, option, nodes)
        cost = np.array([choice.cost for choice in choices], dtype=float)
        idle = np.array([choice.idle for choice in choices], dtype=np.int64)
        first = self._problem.node_gpu_start[nodes]
        for number in self._outer if idle.any() else ():
            level, free = self._problem.levels[number], candidates.state.level_free[number]
            domain = level.gpu_to_domain[np.minimum(first, self._problem.num_gpus - 1)]
            before, total = free[domain], level.total[domain]
            change = self._change(before, idle, total)
            cost += self._gpu_price * level.weight * np.where((domain >= 0) & (idle > 0), change, 0)
        return cost

    def pick(self, candidates: Candidates, option: int, gpus: list[int], need: int) -> tuple[int, ...]:
        """Return the ``need`` of ``gpus`` (all of one node) that cost least."""
        node = np.array([self._problem.gpu_node[gpus[0]]])
        if candidates.usable(option, node).sum() > len(gpus):  # some are held by other bundles of the job
            return self._cheapest(candidates.state, option, gpus, need)[1]
        start = int(self._problem.node_gpu_start[node[0]])
        return tuple(start + slot for slot in self._choices(candidates, option, node)[0].slots)

    def _choices(self, candidates: Candidates, option: int, nodes: IntArray) -> list[_Choice]:
        """Return the cheapest choice on each of ``nodes``; what it depends on is looked up, or computed once."""
        problem, state = self._problem, candidates.state
        need = int(problem.options.gpus[option] * problem.options.bundle_workers[option])
        if not need:
            return [_Choice(0, (), 0)] * len(nodes)
        weight = self._weight[problem.options.job_class[option]]
        usable = candidates.usable(option, nodes)
        idle = candidates.slot_exists[nodes] & (state.gpu_jobs[candidates.slot_gpu[nodes]] == 0)
        seen = np.packbits(np.concatenate((usable, idle), axis=1), axis=1)
        out = []
        for i, (node, row) in enumerate(zip(nodes.tolist(), seen, strict=True)):
            key = (need, weight, self._machine[node], row.tobytes())
            known = self._known.get(key)
            if known is None:
                gpus = candidates.slot_gpu[node][usable[i]].tolist()
                cost, best = self._cheapest(state, option, gpus, need)
                taken = sum(not state.gpu_jobs[gpu] for gpu in best)
                start = int(problem.node_gpu_start[node])
                known = self._known[key] = _Choice(cost, tuple(gpu - start for gpu in best), taken)
            out.append(known)
        return out

    def _cheapest(self, state: State, option: int, gpus: list[int], need: int) -> tuple[int, tuple[int, ...]]:
        """Return the cheapest of a few sets of ``need`` of ``gpus``, all of one node, after its cost."""
        problem = self._problem
        idle = [gpu for gpu in gpus if not state.gpu_jobs[gpu]]
        sockets = list(dict.fromkeys(problem.gpu_socket[gpus].tolist()))
        pools = [gpus, idle]
        if len(sockets) > 1:
            pools += [[gpu for gpu in pool if problem.gpu_socket[gpu] == s] for s in sockets for pool in (gpus, idle)]
        tried = {closest(state, pool, need) for pool in pools if len(pool) >= need}
        return min((self._inside(state, option, chosen), chosen) for chosen in tried)

    def _inside(self, state: State, option: int, gpus: tuple[int, ...]) -> int:
        """Return what a bundle on ``gpus`` adds inside their node."""
        problem, at = self._problem, np.array(gpus, dtype=np.int64)
        weight = self._weight[problem.options.job_class[option]]
        cost = weight * int(problem.topology.node_distances(at).sum()) // 2 if weight and len(gpus) > 1 else 0
        idle = at[state.gpu_jobs[at] == 0]
        for number in self._inner if len(idle) else ():
            level, free = problem.levels[number], state.level_free[number]
            domain = level.gpu_to_domain[idle]
            names, taken = np.unique(domain[domain >= 0], return_counts=True)
            before, total = free[names], level.total[names]
            change = self._change(before, taken, total)
            cost += self._gpu_price * level.weight * int(change.sum())
        return cost

    @staticmethod
    def _change(free: IntArray, taken: IntArray, total: IntArray) -> IntArray:
        """Return how the free GPUs of domains that are in use change; idle ones count as if others filled them."""
        return np.where(free == total, 0, _partial(free - taken, total) - _partial(free, total))


def _partial(free: IntArray, total: IntArray) -> IntArray:
    """Free GPUs of domains that are neither idle nor full."""
    return np.where((free > 0) & (free < total), free, 0)
