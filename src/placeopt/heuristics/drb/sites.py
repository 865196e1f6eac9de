"""What one node offers a bundle of an option: the GPUs it would get there, and how well it would run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placeopt.heuristics.candidates import Candidates
from placeopt.heuristics.drb.split import Half, split
from placeopt.heuristics.drb.tree import HalvingTree, machine_tree
from placeopt.problem import IntArray, Move, Placement, State
from placeopt.problem.state import Tenant
from placeopt.terms.interference import Interference

SPARE_LOOKS = 1000
"""Looks of nodes that are remembered, beside four times the nodes; of more, only those of now."""


@dataclass(frozen=True)
class Site:
    """GPUs of a node by index (in the order of the tasks), and what of the utility co-runners and free GPUs make up."""

    gpus: tuple[int, ...]
    path: int
    worth: float


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


class Sites:
    """Bundles on single nodes, remembered by what the node looks like: nodes in one state are one question."""

    def __init__(self, state: State, candidates: Candidates) -> None:
        self.state, self.candidates = state, candidates
        self.preference = preference(state)
        self._interference = Interference()
        problem = state.problem
        self._by_curve = problem.policy.interference.model == "curve"
        self._curve_counts = self._by_curve and self._interference.worst(problem) > 0
        self.sockets = _socket_in_node(state)
        self._look_at_all()

    def _look_at_all(self) -> None:
        """Begin with nothing remembered."""
        self._levels: dict[int, tuple[IntArray, IntArray]] = {}
        self._numbers: dict[object, int] = {}
        self._number: IntArray = np.array([self._look(n) for n in range(self.state.problem.num_nodes)], dtype=np.int64)
        self._sites: dict[tuple[int, int], Site | None] = {}
        self._known: dict[int, np.ndarray] = {}  # option -> (looks, 2): path and worth, NaN unknown
        self.best_sets: dict[tuple[int, int], tuple[float, tuple[int, ...]]] = {}
        """Of ``Exhaustive``: utility and GPUs by option and look, as long as the numbers of looks hold."""

    def changed(self, node: int) -> None:
        """Note that what is free of a node changed."""
        self._number[node] = self._look(node)
        if len(self._numbers) > 4 * self.state.problem.num_nodes + SPARE_LOOKS:  # new ones come as long as it stays
            self._look_at_all()

    def look_of(self, node: int) -> int:
        """Return a number that nodes share which nothing here tells apart."""
        return int(self._number[node])

    def _look(self, node: int) -> int:
        """Number what the node looks like: its class, what is free of each GPU, and who disturbs whom where."""
        problem, state = self.state.problem, self.state
        start, end = problem.first_gpu[node], problem.first_gpu[node + 1]
        key = (
            int(problem.node_class[node]),
            int(problem.topology.node_machine[node]),
            state.gpu_free_milli[start:end].tobytes(),
            state.gpu_jobs[start:end].tobytes(),
            state.gpu_free_memory[start:end].tobytes(),
            state.gpu_utilisation[start:end].tobytes(),
            tuple(self._jobs(node) if self._by_curve else self.tenants(node)),
        )
        return self._numbers.setdefault(key, len(self._numbers))

    def tenants(self, node: int) -> list[Tenant]:
        """Return profile and GPUs, by index, of each job on a node, in order; of none where profiles do not count."""
        tenants = self.state.tenants
        if self._by_curve or not tenants:
            return []
        start = self.state.problem.first_gpu[node]
        return sorted(
            (profile, tuple(sorted(gpu - start for gpu in held)))
            for (profile, held), count in tenants[node].items()
            for _ in range(count)
        )

    def _jobs(self, node: int) -> list[tuple[tuple[int, ...], int]]:
        """Return the GPUs, by index, of each job on a node; and which job it is if it may be slowed on others too."""
        if not self._curve_counts:
            return []
        problem, state = self.state.problem, self.state
        start, end = problem.first_gpu[node], problem.first_gpu[node + 1]
        held = []
        for job in state.node_jobs[node]:
            placement = state.placements[job]
            if placement is not None:
                here = tuple(sorted(g - start for g in placement.gpus if start <= g < end))
                held.append((here, -1 if len(set(placement.nodes)) == 1 else job))
        return sorted(held)

    def at(self, job: int, option: int, nodes: IntArray) -> tuple[np.ndarray, np.ndarray]:
        """Return path and worth of a bundle on each of ``nodes``, all of which have room for it."""
        known = self._known.get(option)
        if known is None or len(known) < len(self._numbers):
            grown = np.full((2 * len(self._numbers), 2), np.nan)
            if known is not None:
                grown[: len(known)] = known
            known = self._known[option] = grown
        numbers = self._number[nodes]
        unknown = np.isnan(known[numbers, 0])
        for number, first in zip(*np.unique(numbers[unknown], return_index=True), strict=True):
            site = self.site(job, option, int(nodes[np.flatnonzero(unknown)[first]]))
            known[number] = (np.inf, -np.inf) if site is None else (site.path, site.worth)
        return known[numbers, 0], known[numbers, 1]

    def site(self, job: int, option: int, node: int) -> Site | None:
        """Return what a bundle of one of the option's jobs, first ranks first, gets on a node; None without room."""
        key = (option, self.look_of(node))
        if key not in self._sites:
            workers = int(self.state.problem.options.bundle_workers[option])
            self._sites[key] = self._find(job, option, node, list(range(workers)))
        return self._sites[key]

    def gpus(self, job: int, option: int, node: int, ranks: list[int]) -> tuple[int, ...] | None:
        """Return GPUs of the cluster for some of a job's ranks on a node; None without room."""
        options = self.state.problem.options
        if len(ranks) == options.bundle_workers[option] and not self._edges(option):
            site = self.site(job, option, node)
        else:
            site = self._find(job, option, node, ranks)
        start = self.state.problem.first_gpu[node]
        return None if site is None else tuple(start + gpu for gpu in site.gpus)

    def _edges(self, option: int) -> bool:
        problem = self.state.problem
        return bool(problem.class_communication[problem.options.job_class[option]].edges)

    def _find(self, job: int, option: int, node: int, ranks: list[int]) -> Site | None:
        problem, state = self.state.problem, self.state
        need = int(problem.options.gpus[option]) * len(ranks)
        if not need:
            return Site((), 0, self.preference.interference + self.preference.fragmentation)
        start = problem.first_gpu[node]
        usable = np.flatnonzero(self.candidates.usable(option, np.array([node]))[0])
        if len(usable) < need:
            return None
        distances = problem.topology.distance[int(problem.topology.node_machine[node])]
        excess = self._excess(job, option, node, usable)
        tree = machine_tree(distances)
        weights = traffic(state, option, ranks)
        inside = _Inside(self, tree, distances, usable, excess, start)
        found: dict[int, int] = {}
        if not inside.drb(list(range(need)), weights, 0, found, np.random.default_rng(0)):
            return None
        gpus = tuple(found[task] for task in range(need))
        path = int(distances[np.ix_(gpus, gpus)].sum()) // 2
        more = self._slowdown(job, option, node, [gpus])[0]
        sockets = self.sockets[start : problem.first_gpu[node + 1]]
        free = state.gpu_jobs[start : problem.first_gpu[node + 1]] == 0
        return Site(gpus, path, self.worth(more, eq5(sockets, free, gpus)))

    def worth(self, excess: float, free: float) -> float:
        """Return the terms of eq. 2 for slowdowns suffered and caused (thousandths) and for what stays free (eq. 5)."""
        return self.preference.interference * 1000 / (1000 + excess) + self.preference.fragmentation / (1 + free)

    def _excess(self, job: int, option: int, node: int, usable: IntArray) -> np.ndarray:
        """Shape (GPUs of the node,): thousandths by which a task on each usable GPU slows and is slowed."""
        start, end = self.state.problem.first_gpu[node], self.state.problem.first_gpu[node + 1]
        out = np.zeros(end - start)
        if self._is_shared(node):
            out[usable] = self._slowdown(job, option, node, [(gpu,) for gpu in usable.tolist()])
        return out

    def _is_shared(self, node: int) -> bool:
        """Tell whether somebody is on a node whom others may disturb."""
        state = self.state
        if self._by_curve:
            return self._curve_counts and bool(state.node_jobs[node])
        return bool(state.tenants and state.tenants[node])

    def _slowdown(self, job: int, option: int, node: int, sets: list[tuple[int, ...]]) -> list[float]:
        """Return what a job suffers and causes, in thousandths, on each of some sets of a node's GPUs."""
        problem, state = self.state.problem, self.state
        if not self._is_shared(node):
            return [0.0] * len(sets)
        if self._by_curve:
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
        own = int(problem.class_profile[problem.job_class[job]])
        profiles, level = self._co_runners(node)
        if own < 0:
            return np.zeros_like(profiles), np.zeros_like(profiles)
        nearest = level[:, list(gpus)].min(axis=1)
        return problem.slowdown[nearest, own, profiles], problem.slowdown[nearest, profiles, own]

    def _co_runners(self, node: int) -> tuple[IntArray, IntArray]:
        """Return the profiles of the k jobs on a node that have one, and the level of each GPU to them (k, g)."""
        number = self.look_of(node)
        if number not in self._levels:
            problem = self.state.problem
            here = slice(problem.first_gpu[node], problem.first_gpu[node + 1])
            known = [(profile, held) for profile, held in self.tenants(node) if profile >= 0]
            rows = np.full((len(known), here.stop - here.start), 3)
            for row, (_, held) in zip(rows, known, strict=True):
                gpus = list(held)
                for at, part in ((2, problem.gpu_socket[here]), (1, problem.gpu_switch[here])):
                    row[np.isin(part, part[gpus][part[gpus] >= 0])] = at
                row[gpus] = 0
            self._levels[number] = np.array([profile for profile, _ in known], dtype=np.int64), rows
        return self._levels[number]


def _socket_in_node(state: State) -> IntArray:
    """Shape (G,): socket of every GPU, numbered from 0 in each node; 0 where there is none."""
    problem = state.problem
    first = np.full(problem.num_nodes, np.iinfo(np.int64).max)
    inside = problem.gpu_socket >= 0
    np.minimum.at(first, problem.gpu_node[inside], problem.gpu_socket[inside])
    return np.where(inside, problem.gpu_socket - first[problem.gpu_node] + 1, 0)


def eq5(sockets: IntArray, free: np.ndarray, taken: tuple[int, ...] = ()) -> float:
    """
    Mean over sockets of the part that is free once ``taken`` are held: SC'17 eq. 5 of a part of one node.

    ``sockets`` numbers the socket of each of its GPUs from 0; numbers may be left out.
    """
    left = free
    if taken:
        left = free.copy()
        left[list(taken)] = False
    total = np.bincount(sockets)
    here = total > 0
    return float((np.bincount(sockets[left], minlength=len(total))[here] / total[here]).mean())


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


class _Inside:
    """The recursion inside one machine: tasks are GPUs' worths of workers, leaves are GPUs."""

    def __init__(
        self, sites: Sites, tree: HalvingTree, distances: IntArray, usable: IntArray, excess: np.ndarray, start: int
    ) -> None:
        self.tree, self.distances, self.excess = tree, distances, excess
        self.usable = np.zeros(len(distances), dtype=bool)
        self.usable[usable] = True
        self.sites = sites
        self.sockets = sites.sockets[start : start + len(distances)]
        self.free = sites.state.gpu_jobs[start : start + len(distances)] == 0

    def drb(
        self, tasks: list[int], weights: IntArray | None, part: int, found: dict[int, int], rng: np.random.Generator
    ) -> bool:
        """Write task -> GPU of the machine to ``found``; false where there is no room."""
        if not tasks:
            return True
        if self.tree.second[part] < 0:
            found[tasks[0]] = int(self.tree.leaves(part)[0])
            return len(tasks) == 1 and bool(self.usable[found[tasks[0]]])
        sides = [part + 1, int(self.tree.second[part])]
        gpus = [self._usable(side) for side in sides]
        for side, other in ((0, 1), (1, 0)):
            if not len(gpus[other]):
                return self.drb(tasks, weights, sides[side], found, rng)
        across = float(self.distances[np.ix_(*gpus)].mean())
        told = split(
            tasks,
            weights,
            (self._half(sides[0], gpus[0]), self._half(sides[1], gpus[1])),
            across,
            self.sites.preference.path,
            rng,
        )
        return told is not None and all(
            self.drb(own, weights, side, found, rng) for own, side in zip(told, sides, strict=True)
        )

    def _usable(self, part: int) -> IntArray:
        leaves = self.tree.leaves(part)
        return leaves[self.usable[leaves]]

    def _half(self, part: int, gpus: IntArray) -> Half:
        near = np.sort(self.distances[np.ix_(gpus, gpus)], axis=1).cumsum(axis=1)
        excess = np.sort(self.excess[gpus])
        leaves = self.tree.leaves(part)
        sockets, free = self.sockets[leaves], self.free[leaves]
        taken = np.flatnonzero(self.usable[leaves] & free)

        def inside(count: int) -> float:
            """Mean way from the GPU nearest to so many of the half's GPUs."""
            return float(near[:, count - 1].min()) / (count - 1) if count > 1 else 0.0

        def worth(held: int) -> float:
            one_more = tuple(taken[: held + 1].tolist())
            return self.sites.worth(float(excess[min(held, len(excess) - 1)]), eq5(sockets, free, one_more))

        return Half(len(gpus), inside, worth)
