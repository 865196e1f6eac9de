"""The rule of SC'17's artifact: the set of GPUs of greatest system utility, among all sets on all machines."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from math import comb

import numpy as np

from placeopt.heuristics.drb.place import TRIES, Bipartition
from placeopt.heuristics.drb.split import eq5
from placeopt.problem import Move, Placement, State
from placeopt.terms.costs.interference import excess_beside
from placeopt.terms.costs.utility import talks

FLOOR = 0.01
"""The artifact's floor of every term."""

MOST_SETS = 2_000
"""Sets of GPUs of one node that are all scored; of more, only the one that bi-partitioning finds."""


class Exhaustive(Bipartition):
    """
    Chooses the (machine, GPU subset) of greatest system utility, one job at a time; see ``greedy.Chooser``.

    U_s = 3 f^(1/3) / (t^(1/3) + J^(1/3) + w^(1/3)), f = 0.01, all terms at least f: t as in ``terms.costs.utility``
    (form ``sc17``), J the mean of what the job suffers from and causes to co-runners, as in the artifact a speed (solo
    over collocated time) taken for a cost, w the mean over the machine's sockets of free over total GPUs (0 and 1
    become f).

    Departures from the artifact: the GPUs counted out of w are the chosen ones (it counts others); of equal sets the
    first is taken (it takes the last, by memory addresses); slowdowns are those of the instance at the closest part
    that two jobs share (it has them by numbers of GPUs, and in a common socket only); a GPU is assigned once (it may
    assign it twice a round); jobs on several nodes, which it does not support, are placed by ``Bipartition``.
    """

    def __init__(self, state: State) -> None:
        super().__init__(state)
        self._longest = max(1, state.problem.topology.max_machine_distance)

    def on_one_node(self, job: int, option: int) -> Iterator[Placement]:
        """Yield the best set of each of the best nodes, ties by number."""
        nodes = np.flatnonzero(self.candidates.free_rooms(option) > 0)
        if not self.problem.options.gpus[option] or not len(nodes):
            yield from super().on_one_node(job, option)
            return
        ranked: list[tuple[float, int, tuple[int, ...]]] = []
        signatures, request = self.node_candidates.signatures, self.node_candidates.request(option)
        for node in nodes.tolist():
            key, cached = (request, int(signatures.number[node])), signatures.cache.best_sets
            if key not in cached:
                cached[key] = self._best(job, option, node)
            utility, gpus = cached[key]
            if gpus:
                ranked.append((-utility, node, gpus))
        workers = int(self.problem.options.bundle_workers[option])
        for _, node, gpus in sorted(ranked)[:TRIES]:
            start = self.problem.first_gpu[node]
            yield Placement(option, (node,) * workers, tuple(start + g for g in gpus))

    def _best(self, job: int, option: int, node: int) -> tuple[float, tuple[int, ...]]:
        """Return the greatest utility on a node, and the GPUs by index."""
        problem = self.problem
        workers = int(problem.options.bundle_workers[option])
        need, start = int(problem.options.bundle_gpus[option]), problem.first_gpu[node]
        usable = np.flatnonzero(self.candidates.usable(option, np.array([node]))[0]).tolist()
        sets: list[tuple[int, ...]]
        if comb(len(usable), need) > MOST_SETS:
            node_candidate = self.node_candidates.node_candidate(job, option, node)
            sets = [] if node_candidate is None else [node_candidate.gpus]
        else:
            sets = list(combinations(usable, need))
        best: tuple[float, tuple[int, ...]] = (-1.0, ())
        for gpus in sets:
            placement = Placement(option, (node,) * workers, tuple(start + g for g in gpus))
            utility = self.system_utility(job, placement)
            if utility > best[0]:
                best = (utility, gpus)
        return best

    def system_utility(self, job: int, placement: Placement) -> float:
        """U_s of a job that is not placed yet, at a placement on one node."""
        problem, state, option = self.problem, self.state, placement.option
        node = placement.nodes[0]
        start, end = problem.first_gpu[node], problem.first_gpu[node + 1]
        held = tuple(g - start for g in placement.gpus)
        free = eq5(self.node_candidates.sockets[start:end], state.gpu_jobs[start:end] == 0, held)
        n = len(placement.gpus)
        far = self._longest * max(n, n * (n - 1) // 2)
        more = problem.topology.path(placement.gpus) - int(problem.best_path[option]) if talks(problem, option) else 0
        terms = (max(FLOOR, more / far), self._speeds(job, placement), FLOOR if free in (0.0, 1.0) else free)
        return float(3 * FLOOR ** (1 / 3) / sum(max(FLOOR, term) ** (1 / 3) for term in terms))

    def _speeds(self, job: int, placement: Placement) -> float:
        """Return J: the mean of suffered and caused."""
        state, node = self.state, placement.nodes[0]
        start = self.problem.first_gpu[node]
        if self.problem.policy.interference.model == "curve":
            others = list(state.node_jobs[node])
            undo = state.apply(Move(job, placement))
            suffered = np.array(list(excess_beside(state, job).values()))
            caused = np.array([excess_beside(state, other).get(job, 0) for other in others])
            state.apply(undo)
            number = len(others)
        else:
            suffered, caused = self.node_candidates.pairs(job, node, tuple(g - start for g in placement.gpus))
            number = len(self.node_candidates.signatures.tenants(node))
        slowed, slows = suffered[suffered > 0], caused[caused > 0]
        mean = float((1000 / (1000 + slows)).mean()) if len(slows) else 0.0
        return (float((1000 / (1000 + slowed)).sum()) / max(number, 1) + mean) / 2
