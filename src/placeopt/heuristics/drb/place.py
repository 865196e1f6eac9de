"""Dual recursive bi-partitioning of one job onto the cluster (SC'17 algorithm 2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from placeopt.heuristics.candidates import Candidates
from placeopt.heuristics.drb.hardware_tree import cluster_tree
from placeopt.heuristics.drb.node_utility import NodeUtility
from placeopt.heuristics.drb.split import Hardware, assign, task_traffic
from placeopt.heuristics.greedy_pass import TRIES, ByScore, nodes_in_order, place
from placeopt.heuristics.node_selection import nodes_for_bundles
from placeopt.heuristics.scores.registry import score_named
from placeopt.problem import BoolArray, Placement, Problem, State
from placeopt.terms.costs.utility import talks


class Bipartition:
    """
    Chooses places by dual recursive bi-partitioning; see ``greedy_pass.Chooser``.

    Hardware and job are halved together: the cluster down to nodes, each node down to GPUs, the job's workers and then
    their GPUs by ``split``. What must be on one node goes to the half with the node of greatest utility, level by
    level, so to that node. The rules that look beyond room (links, queues, minimal utility) judge the result; a job
    that they refuse waits, as algorithm 1 postpones it. Splits over stated numbers of domains come from
    ``nodes_for_bundles``; DRB then chooses the GPUs inside nodes.
    """

    def __init__(self, state: State, utility: Callable[[Problem], NodeUtility] = NodeUtility) -> None:
        self._utility = utility(state.problem)
        self._candidates = Candidates(state, self._utility)
        self._tree = cluster_tree(state.problem.topology)

    def changed(self, node: int) -> None:
        """See ``Chooser``."""
        self._candidates.changed(node)
        self._utility.changed(node)

    def place(self, job: int) -> Placement | None:
        """See ``Chooser``: the most valuable option first."""
        return place(self._candidates, job, offered=self._places)

    def _places(self, candidates: Candidates, option: int) -> Iterator[Placement]:
        """Yield places with room for a job in an option, the best first."""
        options = candidates.problem.options
        workers = int(options.workers[option])
        ways: Iterator[Sequence[int] | None]
        if options.bundles[option] == 1:
            ways = ([node] * workers for node in nodes_in_order(candidates.scores(option), TRIES))
        elif options.splits[option]:
            ways = iter([nodes_for_bundles(candidates, option)])
        else:
            scores = candidates.scores(option)
            cluster = Hardware(self._tree, candidates.free_rooms(option) * np.isfinite(scores), -scores)
            traffic = task_traffic(candidates.problem, option, range(workers))
            ways = iter([assign(workers, traffic, cluster, self._utility.weights[0])])
        for nodes in ways:
            placement = self._on_nodes(option, nodes) if nodes else None
            if placement is not None:
                yield placement

    def _on_nodes(self, option: int, nodes: Sequence[int]) -> Placement | None:
        """Choose GPUs inside the node of every rank."""
        each, gpus_of = int(self._candidates.problem.options.gpus[option]), dict[int, tuple[int, ...]]()
        for node in dict.fromkeys(nodes):
            ranks = [rank for rank, at in enumerate(nodes) if at == node]
            gpus = self._utility.gpus(self._candidates, option, node, ranks)
            if gpus is None:
                return None
            gpus_of.update((rank, gpus[i * each : (i + 1) * each]) for i, rank in enumerate(ranks))
        return Placement(option, tuple(nodes), tuple(g for rank in range(len(nodes)) for g in gpus_of[rank]))


def communicating_jobs(problem: Problem) -> BoolArray:
    """Shape (J,): jobs that state traffic and have an option of several GPUs."""
    options = problem.options
    return np.isin(problem.job_class, [options.job_class[o] for o in range(len(options)) if talks(problem, o)])


class BipartitionOfCommunicating:
    """Chooses places by bi-partitioning for `communicating_jobs`, by ``score`` for others; see ``Chooser``."""

    def __init__(self, state: State, score: str) -> None:
        self._communicating, self._bipartition = communicating_jobs(state.problem), Bipartition(state)
        self._by_score = ByScore(Candidates(state, score_named(score, state.problem), for_many=True))

    def place(self, job: int) -> Placement | None:
        """See ``Chooser``."""
        return (self._bipartition if self._communicating[job] else self._by_score).place(job)

    def changed(self, node: int) -> None:
        """See ``Chooser``."""
        self._bipartition.changed(node)
        self._by_score.changed(node)
