"""Dual recursive bi-partitioning of one job onto the cluster (SC'17 algorithm 2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from placeopt.heuristics.candidates import Candidates
from placeopt.heuristics.drb.hardware_tree import HalvingTree, cluster_tree
from placeopt.heuristics.drb.node_utility import NodeUtility
from placeopt.heuristics.drb.split import Half, assign
from placeopt.heuristics.drb.traffic import communicating_jobs, task_traffic
from placeopt.heuristics.greedy_pass import TRIES, ByScore, nodes_in_order, place, table_for
from placeopt.heuristics.node_selection import nodes_for_bundles
from placeopt.heuristics.scores.registry import score_named
from placeopt.problem import Placement, Problem, State


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
        self._height = _heights(state.problem, self._tree)
        self.changed = self._candidates.changed

    def place(self, job: int) -> Placement | None:
        """See ``Chooser``: the most valuable option first."""
        return place(self._candidates, job, offered=self._places)

    def _places(self, candidates: Candidates, option: int) -> Iterator[Placement]:
        """Yield places with room for a job in an option, the best first."""
        options = candidates.problem.options
        workers = list(range(int(options.workers[option])))
        if options.bundles[option] == 1:
            ways: Iterator[dict[int, int] | None] = (
                dict.fromkeys(workers, node) for node in nodes_in_order(candidates.scores(option), TRIES)
            )
        elif options.splits[option]:
            ways = iter([dict(enumerate(nodes_for_bundles(candidates, option) or ()))])
        else:
            cluster = _Cluster(candidates, option, self._tree, self._height)
            traffic = task_traffic(candidates.problem, option, workers)
            ways = iter([assign(workers, traffic, cluster, self._utility.weights[0])])
        for node_of in ways:
            placement = self._on_nodes(option, node_of) if node_of else None
            if placement is not None:
                yield placement

    def _on_nodes(self, option: int, node_of: dict[int, int]) -> Placement | None:
        """Choose GPUs inside every node for the ranks there."""
        each, gpus_of = int(self._candidates.problem.options.gpus[option]), dict[int, tuple[int, ...]]()
        for node in dict.fromkeys(node_of.values()):
            ranks = [rank for rank, at in node_of.items() if at == node]
            gpus = self._utility.gpus(self._candidates, option, node, sorted(ranks))
            if gpus is None:
                return None
            gpus_of.update((rank, gpus[i * each : (i + 1) * each]) for i, rank in enumerate(sorted(ranks)))
        ranks = sorted(node_of)
        return Placement(
            option, tuple(node_of[rank] for rank in ranks), tuple(g for rank in ranks for g in gpus_of[rank])
        )


class _Cluster:
    """The nodes of a cluster as `placeopt.heuristics.drb.split.Hardware`; tasks are workers."""

    def __init__(self, candidates: Candidates, option: int, tree: HalvingTree, height: np.ndarray) -> None:
        self.tree, self._height = tree, height
        self.room = tree.sums(candidates.free_rooms(option))
        self._worth = -candidates.scores(option)[tree.order]

    def halves(self, parts: tuple[int, int], leaf_of: dict[int, int]) -> tuple[Half, Half, float]:
        """See ``Hardware``; the job's other nodes do not count."""
        del leaf_of
        return self._half(parts[0]), self._half(parts[1]), float(self._height[parts[0] - 1])

    def _half(self, part: int) -> Half:
        below = slice(part, int(self.tree.last[part]))
        room, height = self.room[below], self._height[below]
        worth = float(self._worth[self.tree.first[part] : self.tree.end[part]].max())

        def inside(count: int) -> float:
            """Least height of a part of the half that has room for so many."""
            return float(height[room >= count].min()) if count > 1 else 0.0

        return Half(int(room[0]), inside, lambda held, beside: worth)  # noqa: ARG005 - alike for every task


def _heights(problem: Problem, tree: HalvingTree) -> np.ndarray:
    """Shape (parts,): distance between the halves of every part, by a node of each; of a node, its longest one."""
    topology, start = problem.topology, problem.node_gpu_start
    height, leaf = np.zeros(len(tree.first)), tree.second < 0
    longest = np.array([int(distances.max(initial=0)) for distances in topology.distance])
    height[leaf] = longest[topology.node_machine[tree.order[tree.first[leaf]]]]
    before = np.concatenate([[0], np.cumsum(np.diff(start)[tree.order])])  # GPUs to the left of each leaf
    some = before[tree.end] > before[tree.first]
    both = np.flatnonzero(~leaf & np.append(some[1:], False) & some[tree.second])
    ends = [
        np.searchsorted(before[1:], before[tree.first[half]], side="right") for half in (both + 1, tree.second[both])
    ]
    if len(both):
        height[both] = topology.distances(start[tree.order[ends[0]]], start[tree.order[ends[1]]])
    return height


class BipartitionOfCommunicating:
    """Chooses places by bi-partitioning for `communicating_jobs`, by ``score`` for others; see ``Chooser``."""

    def __init__(self, state: State, score: str) -> None:
        self._communicating, self._bipartition = communicating_jobs(state.problem), Bipartition(state)
        self._by_score = table_for(state, score) or ByScore(Candidates(state, score_named(score, state.problem)))

    def place(self, job: int) -> Placement | None:
        """See ``Chooser``."""
        return (self._bipartition if self._communicating[job] else self._by_score).place(job)

    def changed(self, node: int) -> None:
        """See ``Chooser``."""
        self._bipartition.changed(node)
        self._by_score.changed(node)
