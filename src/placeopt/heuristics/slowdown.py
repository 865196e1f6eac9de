"""How greedy ranks nodes by what jobs lose there: by the way between their GPUs, and by each other."""

from __future__ import annotations

import numpy as np

from placeopt.heuristics.candidates import Candidates, closest
from placeopt.heuristics.scores import best_fit
from placeopt.problem import IntArray, Placement, Problem
from placeopt.terms.run_time import path_excess

PACKING = 50
"""Thousandths of run time that a fuller node may cost instead of an idle one."""


class LeastSlowdown:
    """
    The least excess run time, in thousandths: the job's own by the path between its GPUs, if they are all on the node,
    and what it and its neighbours do to each other, both ways, summed; among nodes about alike the fullest. Ours.

    Neighbours count as under interference ``pairwise``: each at the closest domain shared. A GPU set is the closest
    one, or the closest one inside a socket, whichever costs less.
    """

    def __init__(self, problem: Problem) -> None:
        self._problem = problem
        self._both = (problem.slowdown + problem.slowdown.transpose(0, 2, 1)).tolist()
        self._socket, self._switch = problem.gpu_socket.tolist(), problem.gpu_switch.tolist()
        known = problem.policy.postpone.spread_slowdown_thousandths
        own = (communication.spread_slowdown_thousandths for communication in problem.class_communication)
        self._spread = [known if spread is None else spread for spread in own]

    def looks_at(self, problem: Problem) -> IntArray:
        """Return profile and spread slowdown of each option's jobs."""
        each = np.column_stack((problem.class_profile, np.array(self._spread, dtype=np.int64)))
        asked: IntArray = each[problem.options.job_class]
        return asked

    def __call__(self, candidates: Candidates, option: int, nodes: IntArray) -> np.ndarray:
        """Score ``nodes``, on all of which a bundle of ``option`` fits."""
        score = PACKING * best_fit(candidates, option, nodes)
        if self._problem.options.gpus[option]:
            for i, node in enumerate(nodes.tolist()):
                score[i] += self._price(candidates, option, node, candidates.choose_gpus(option, node))
        return score

    def pick(self, candidates: Candidates, option: int, gpus: list[int], need: int) -> tuple[int, ...]:
        """Return the ``need`` of ``gpus`` (all of one node) that cost least."""
        node = int(self._problem.gpu_node[gpus[0]])
        sockets = dict.fromkeys(self._socket[gpu] for gpu in gpus)
        groups = [gpus, *([gpu for gpu in gpus if self._socket[gpu] == socket] for socket in sockets)]
        tried = [
            closest(self._problem, candidates.state, group, need) if len(group) > need else tuple(group)
            for group in groups[: None if len(sockets) > 1 else 1]
            if len(group) >= need
        ]
        return min(tried, key=lambda chosen: self._price(candidates, option, node, chosen))

    def _price(self, candidates: Candidates, option: int, node: int, gpus: tuple[int, ...]) -> int:
        """Excess run time of all, in thousandths, that a bundle on ``gpus`` adds."""
        problem, k = self._problem, int(self._problem.options.job_class[option])
        workers = int(problem.options.bundle_workers[option])
        total = 0
        if len(gpus) > 1 and problem.options.bundles[option] == 1:
            total += path_excess(problem, Placement(option, (node,) * workers, gpus), self._spread[k])
        profile = int(problem.class_profile[k])
        if profile < 0 or not candidates.state.tenants:
            return total
        mine, sockets = set(gpus), {self._socket[gpu] for gpu in gpus} - {-1}
        switches = {self._switch[gpu] for gpu in gpus} - {-1}
        for (beside, held), count in candidates.state.tenants[node].items():
            if not mine.isdisjoint(held):
                level = 0
            elif any(self._switch[gpu] in switches for gpu in held):
                level = 1
            elif any(self._socket[gpu] in sockets for gpu in held):
                level = 2
            else:
                level = 3
            total += count * self._both[level][profile][beside]
        return total
