"""Dual recursive bi-partitioning of one job onto the cluster (SC'17 algorithm 2)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from placeopt.heuristics.candidates import Candidates
from placeopt.heuristics.drb.hardware_tree import HalvingTree, cluster_tree
from placeopt.heuristics.drb.node_candidates import NodeCandidates, rank_traffic
from placeopt.heuristics.drb.split import Half, split
from placeopt.heuristics.node_selection import nodes_for_bundles
from placeopt.heuristics.scores.fit import BestFit
from placeopt.problem import IntArray, Placement, State
from placeopt.terms.rules import fits_beyond_room

TRIES = 8
"""Nodes tried for what goes to one node, where a rule that signatures beyond room refuses the best."""


class Bipartition:
    """
    Chooses places by dual recursive bi-partitioning; see ``greedy.Chooser``.

    Hardware and job are halved together: the cluster down to nodes, each node down to GPUs, the job's workers and then
    their GPUs by ``split``. What must be on one node goes to the half with the node of greatest utility, level by
    level, so to that node. The rules that look beyond room (links, queues, minimal utility) judge the result; a job
    that they refuse waits, as algorithm 1 postpones it. Splits over stated numbers of domains come from
    ``nodes_for_bundles``; DRB then chooses the GPUs inside nodes.
    """

    def __init__(self, state: State) -> None:
        self.state, self.problem = state, state.problem
        self.candidates = Candidates(state, BestFit(state.problem))
        self.node_candidates = NodeCandidates(state, self.candidates)
        self.tree = cluster_tree(state.problem.topology)
        self.height = _heights(state, self.tree)

    def changed(self, node: int) -> None:
        """See ``greedy.Chooser``."""
        self.candidates.changed(node)
        self.node_candidates.changed(node)

    def place(self, job: int) -> Placement | None:
        """See ``greedy.Chooser``: the most valuable option first."""
        values = self.problem.options.value
        for option in sorted(self.problem.options_of(job), key=lambda o: -int(values[o])):
            for placement in self.places(job, option):
                if fits_beyond_room(self.state, job, placement):
                    return placement
        return None

    def places(self, job: int, option: int) -> Iterator[Placement]:
        """Yield places with room for a job in an option, the best first."""
        if self.problem.options.bundles[option] == 1:
            yield from self.on_one_node(job, option)
            return
        told = self._nodes(job, option)
        placement = None if told is None else self._on(job, option, told)
        if placement is not None:
            yield placement

    def on_one_node(self, job: int, option: int) -> Iterator[Placement]:
        """Yield the nodes of greatest utility, ties by number."""
        nodes = np.flatnonzero(self.candidates.free_rooms(option) > 0)
        if not len(nodes):
            return
        path, worth = self.node_candidates.at(job, option, nodes)
        best = int(self.problem.best_path[option])
        utility = self.node_candidates.preference.path * np.where(path > best, best / np.maximum(path, 1), 1.0) + worth
        workers = int(self.problem.options.bundle_workers[option])
        for i in np.argsort(-utility, kind="stable")[:TRIES].tolist():
            gpus = self.node_candidates.gpus(job, option, int(nodes[i]), list(range(workers)))
            if gpus is not None:
                yield Placement(option, (int(nodes[i]),) * workers, gpus)

    def _nodes(self, job: int, option: int) -> dict[int, list[int]] | None:
        """Return which ranks of a job go to which node."""
        if self.problem.options.splits[option]:
            nodes = nodes_for_bundles(self.candidates, option)
            out: dict[int, list[int]] = {}
            for rank, node in enumerate(nodes or ()):
                out.setdefault(node, []).append(rank)
            return out if nodes is not None else None
        return _Across(self, job, option).run()

    def _on(self, job: int, option: int, told: dict[int, list[int]]) -> Placement | None:
        """Choose GPUs inside every node."""
        gpus_of: dict[int, tuple[int, ...]] = {}
        node_of: dict[int, int] = {}
        each = int(self.problem.options.gpus[option])
        for node, ranks in told.items():
            gpus = self.node_candidates.gpus(job, option, node, ranks)
            if gpus is None:
                return None
            for i, rank in enumerate(ranks):
                gpus_of[rank], node_of[rank] = gpus[i * each : (i + 1) * each], node
        ranks = sorted(node_of)
        return Placement(option, tuple(node_of[r] for r in ranks), tuple(g for r in ranks for g in gpus_of[r]))


class _Across:
    """The recursion over the nodes of a cluster: tasks are workers, leaves are nodes with room for several."""

    def __init__(self, chooser: Bipartition, job: int, option: int) -> None:
        state, self.tree = chooser.state, chooser.tree
        problem = state.problem
        self.path_weight = chooser.node_candidates.preference.path
        rooms = chooser.candidates.free_rooms(option)
        ordered = rooms[self.tree.order]
        sums = np.concatenate([[0], np.cumsum(ordered)])
        self.room: IntArray = sums[self.tree.end] - sums[self.tree.first]  # by part
        self.height = chooser.height
        nodes = np.flatnonzero(rooms > 0)
        self.worth = np.full(problem.num_nodes, -np.inf)
        if len(nodes):
            self.worth[nodes] = chooser.node_candidates.at(job, option, nodes)[1]
        self.worth = self.worth[self.tree.order]
        edges = problem.class_communication[problem.options.job_class[option]].edges
        self.weights = rank_traffic(state, option) if edges else None
        self.tasks = list(range(int(problem.options.workers[option])))
        self.told: dict[int, list[int]] = {}

    def run(self) -> dict[int, list[int]] | None:
        """Return node -> ranks, None without room."""
        if not len(self.room) or self.room[0] < len(self.tasks):
            return None
        return self.told if self._drb(self.tasks, 0, np.random.default_rng(0)) else None

    def _drb(self, tasks: list[int], part: int, rng: np.random.Generator) -> bool:
        if not tasks:
            return True
        second = int(self.tree.second[part])
        if second < 0:
            self.told[int(self.tree.leaves(part)[0])] = tasks
            return bool(len(tasks) <= self.room[part])
        sides = (part + 1, second)
        halves = (self._half(sides[0]), self._half(sides[1]))
        told = split(tasks, self.weights, halves, float(self.height[part]), self.path_weight, rng)
        return told is not None and all(self._drb(own, side, rng) for own, side in zip(told, sides, strict=True))

    def _half(self, part: int) -> Half:
        below = slice(part, int(self.tree.last[part]))
        room, height = self.room[below], self.height[below]
        worth = float(self.worth[self.tree.first[part] : self.tree.end[part]].max())

        def inside(count: int) -> float:
            """Least height of a part of the half that has room for so many."""
            return float(height[room >= count].min()) if count > 1 else 0.0

        def same(held: int, beside: int) -> float:
            del held, beside
            return worth

        return Half(int(room[0]), inside, same)


def _heights(state: State, tree: HalvingTree) -> np.ndarray:
    """Shape (parts,): distance between the halves of every part, by a node of each; of a node, its longest one."""
    problem, topology = state.problem, state.problem.topology
    out = np.zeros(len(tree.first))
    gpus = np.diff(problem.node_gpu_start)
    position = np.arange(len(tree.order))
    with_gpus = np.where(gpus[tree.order] > 0, position, len(position))
    following = np.minimum.accumulate(with_gpus[::-1])[::-1] if len(position) else position  # next node with a GPU
    inner = np.flatnonzero(tree.second >= 0)
    first, second = following[tree.first[inner]], following[tree.first[tree.second[inner]]]
    cached = (first < tree.end[inner + 1]) & (second < tree.end[tree.second[inner]])
    ends = [problem.node_gpu_start[tree.order[at[cached]]] for at in (first, second)]
    if cached.any():
        out[inner[cached]] = topology.distances(ends[0], ends[1])
    leaves = np.flatnonzero(tree.second < 0)
    longest = np.array([int(d.max(initial=0)) for d in topology.distance])
    out[leaves] = longest[topology.node_machine[tree.order[tree.first[leaves]]]] if len(leaves) else 0
    return out
