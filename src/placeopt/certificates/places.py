"""Nodes as proofs of cost see them: paths, who meets whom, and what running jobs that stay leave and cost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from placeopt.problem import Problem, State
from placeopt.terms.costs.communication import Communication
from placeopt.terms.costs.interference import Interference, nested_domains
from placeopt.terms.objective import weight_of, weighted_costs

NOWHERE = 4
"""The level, after GPU, switch, socket and node, at which jobs do not meet."""


class Traffic(NamedTuple):
    """What decides what bundles of a job cost on a node."""

    profile: int
    """Row in the slowdown table, after a first one of nothing."""
    weight: int
    """Of the path of each pair of its GPUs."""
    gpus: int
    """Of the whole job, at least."""
    scattered: bool
    """Whether it may be on several nodes, where it may meet others like it again."""


class Resident(NamedTuple):
    """A job on GPUs of a node."""

    profile: int
    scattered: bool
    gpus: tuple[int, ...]


class Place(NamedTuple):
    """A node with g GPUs, numbered from 0, and what running jobs that stay leave of it."""

    distance: tuple[tuple[int, ...], ...]
    """Paths between GPUs, (g, g)."""
    out: tuple[int, ...]
    """Path of each GPU to the node's domain."""
    levels: tuple[tuple[int, ...], ...]
    """Closest domain that two GPUs share, (g, g): 0 to 3 for GPU, switch, socket, node."""
    units: tuple[int, ...]
    """Left of each GPU."""
    kinds: tuple[tuple[int, int], ...]
    """Type of each GPU, and memory left, MiB."""
    residents: tuple[Resident, ...]


class Places:
    """
    The nodes of a state under the weights of its policy.

    Costs are those of paths, and of pairs of jobs that meet, as far as a node tells: the ways between domains, and
    pairs of jobs that may meet on several nodes, are left out, and so is what other terms charge.
    """

    def __init__(self, state: State, full: int) -> None:
        """``full``: units of a GPU, 1 where they are jobs."""
        problem = state.problem
        weighted = weighted_costs(problem)
        pairwise = problem.policy.interference.model == "pairwise"
        self.path_weight = weight_of(weighted, Communication)
        self.pair_weight = weight_of(weighted, Interference) * pairwise
        self.pair = self._pairs(problem)
        self.farthest = [
            [max(to for to in range(at, 5) if (rows[:, at : to + 1] == rows[:, [at]]).all()) for at in range(5)]
            for rows in self.pair
        ]
        """By profile and level: the farthest level at which the profile costs the same beside any other."""
        self._state, self._problem, self._domains = state, problem, nested_domains(problem)
        jobs = (problem.jobs_per_gpu or 1) - state.gpu_jobs
        self._units = np.maximum(state.gpu_free_milli if full > 1 else jobs, 0)
        self._residents: list[list[Resident]] = [[] for _ in range(problem.num_nodes)]
        self.standing = 0
        """What the running jobs that stay cost."""
        held = [(job, placement) for job, placement in enumerate(state.placements) if placement and placement.gpus]
        for job, placement in held:
            gpus = np.array(placement.gpus)
            nodes = problem.gpu_node[gpus]
            for node in sorted(set(nodes.tolist())):
                own = tuple(sorted((gpus[nodes == node] - problem.node_gpu_start[node]).tolist()))
                profile = 1 + int(problem.class_profile[problem.job_class[job]])
                self._residents[node].append(Resident(profile, len(set(nodes.tolist())) > 1, own))
                machine = problem.topology.node_machine[node]
                out = problem.topology.root[machine] + problem.topology.node_uplink[node]
                weight = self.weight_of(int(problem.job_class[job]))
                self.standing += self.paths(problem.topology.distance[machine], out, weight, own, len(gpus))
        for node, residents in enumerate(self._residents):
            if len(residents) > 1:
                place = self.place(node)
                self.standing += sum(self.meeting(place, one, residents[:at]) for at, one in enumerate(residents))

    def _pairs(self, problem: Problem) -> np.ndarray:
        """Return what two profiles cost each other by the level at which they meet, shape (P + 1, P + 1, 5)."""
        size = 1 + problem.slowdown.shape[1]
        out = np.zeros((size, size, NOWHERE + 1), dtype=np.int64)
        both = problem.slowdown + problem.slowdown.transpose(0, 2, 1)
        out[1:, 1:, :NOWHERE] = self.pair_weight * both.transpose(1, 2, 0)
        return out

    def weight_of(self, job_class: int) -> int:
        """Return what the path of each pair of GPUs of a job counts; 0 where pairs differ."""
        traffic = self._problem.class_communication[job_class]
        return 0 if traffic.edges or self._problem.trees else int(traffic.weight)

    def traffic(self, option: int, together: int) -> Traffic:
        """Return what decides the cost of bundles of an option, ``together`` workers each."""
        problem, options = self._problem, self._problem.options
        k = int(options.job_class[option])
        rows = range(problem.class_option_start[k], problem.class_option_start[k + 1])
        least = min(int(options.workers[o]) for o in rows if options.name[o] == options.name[option])
        gpus = int(options.gpus[option]) * least
        profile = 1 + int(problem.class_profile[k])
        known = profile if self.pair[profile].any() else 0
        scattered = max(int(options.workers[o]) for o in rows if options.name[o] == options.name[option]) > together
        return Traffic(known, self.weight_of(k) if gpus > 1 else 0, gpus, scattered)

    def paths(
        self, distance: Sequence[Sequence[int]], out: Sequence[int], weight: int, gpus: Sequence[int], total: int
    ) -> int:
        """Return the cost of the paths between GPUs of a job, and of each to the domain for all its others."""
        if not weight:
            return 0
        inside = sum(int(distance[a][b]) for a, b in combinations(gpus, 2))
        away = max(0, total - len(gpus)) * sum(int(out[gpu]) for gpu in gpus)
        return self.path_weight * weight * (inside + away)

    def meeting(self, place: Place, job: Resident, others: Iterable[Resident]) -> int:
        """Return what a job and others of its node cost each other."""
        met = (other for other in others if not (job.scattered and other.scattered))
        levels = ((o.profile, min(place.levels[a][b] for a in job.gpus for b in o.gpus)) for o in met)
        return sum(int(self.pair[job.profile, profile, level]) for profile, level in levels)

    def place(self, node: int) -> Place:
        """Return a node."""
        problem, topology = self._problem, self._problem.topology
        gpus = np.arange(problem.node_gpu_start[node], problem.node_gpu_start[node + 1])
        machine = topology.node_machine[node]
        levels = np.full((len(gpus), len(gpus)), NOWHERE - 1)
        for level in (2, 1, 0):
            own = self._domains[level][gpus]
            levels[own[:, None] == own] = level
        left = zip(problem.gpu_type[gpus].tolist(), self._state.gpu_free_memory[gpus].tolist(), strict=True)
        return Place(
            tuple(map(tuple, topology.distance[machine].tolist())),
            tuple((topology.root[machine] + topology.node_uplink[node]).tolist()),
            tuple(map(tuple, levels.tolist())),
            tuple(self._units[gpus].tolist()),
            tuple(left),
            tuple(self._residents[node]),
        )


def suitable(problem: Problem, place: Place, option: int, share: int) -> tuple[int, ...]:
    """Return the GPUs of a place that take a part of a bundle of an option, with ``share`` of its units."""
    least, types = int(problem.options.gpu_memory_mib[option]), problem.options.gpu_type_ok[option]
    kinds = enumerate(zip(place.units, place.kinds, strict=True))
    return tuple(at for at, (units, (of, left)) in kinds if units >= share and max(left, 0) >= least and types[of])
