"""What is free, as a copy that may be changed, and how many workers of an option each node could take of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from placeopt.deadline import FOREVER, Deadline
from placeopt.feasibility.requirement import Requirement, one_node_of_each_class
from placeopt.model import Job, Spread
from placeopt.model.conditions import ANY_NODE
from placeopt.problem import CPU, MEMORY, BoolArray, IntArray, Problem, State
from placeopt.problem.arrays import Room
from placeopt.problem.classes import CHOICES, Admission, effective_labels
from placeopt.problem.free_capacity import gpus_with_room, times_by_resources
from placeopt.problem.gpu_slots import has_profile, with_room
from placeopt.problem.hardware import gpu_parts, node_domains
from placeopt.problem.places import Place
from placeopt.problem.worker_distribution import Surroundings, WorkerDistribution


@dataclass(eq=False)
class FreeCapacity(Room):
    """Free capacity for one job that is not placed yet."""

    problem: Problem
    open: dict[str, BoolArray]  # barrier -> mask of the nodes that satisfy it, (N,)
    exempt: tuple[IntArray, ...]  # of each place, what jobs that do not count take there
    _domains: dict[str, IntArray] = field(default_factory=dict, repr=False)

    def domains(self, level: str) -> IntArray:
        """Shape (N,): the domain of ``level`` above each node (``node``: the node itself), -1 without."""
        if level not in self._domains:
            self._domains[level] = node_domains(self.problem.instance, level)
        return self._domains[level]

    def usable(self, requirement: Requirement) -> BoolArray:
        """Shape (G,): GPUs that could take one more job with these demands now."""
        suits = self.gpu_suits(requirement)
        if not requirement.any_geometry and suits.any():
            suits &= with_room(
                self.problem.type_geometry, requirement.gpu_profile, self.problem.gpu_type, self.gpu_slots
            )
        return suits & gpus_with_room(
            self.problem,
            self.gpu_free_milli,
            self.gpu_free_memory,
            self.gpu_jobs,
            milli=requirement.milli,
            memory_mib=requirement.gpu_memory_mib,
            jobs_per_gpu=requirement.jobs_per_gpu,
        )

    def gpu_suits(self, requirement: Requirement) -> BoolArray:
        """Shape (G,): GPUs that could while idle, by model and memory."""
        problem = self.problem
        suits = (problem.type_memory_mib >= requirement.gpu_memory_mib) & ~problem.type_lost
        if requirement.holds:
            suits &= np.array([not holds & requirement.holds for holds in problem.type_holds], dtype=bool)
        if not requirement.any_geometry:
            suits &= np.array([has_profile(of, requirement.gpu_profile) for of in problem.type_geometry], dtype=bool)
        if requirement.gpu_models:
            suits &= np.isin(np.array(problem.type_model), requirement.gpu_models)
        of_gpu: BoolArray = suits[problem.gpu_type]
        return of_gpu

    def of_resource(self, r: int) -> IntArray:
        """Shape (N,): free amount of ``Requirement.resources[r]`` on each node."""
        return self.node_free[:, r] if r < self.node_free.shape[1] else np.zeros(len(self.node_free), dtype=np.int64)

    def workers(self, requirement: Requirement) -> IntArray:
        """Shape (N,): most workers that each node could take, at most ``requirement.most``."""
        known = self.node_free.shape[1]
        if any(requirement.demand[known:]):
            return np.zeros(self.problem.num_nodes, dtype=np.int64)
        need = np.array(requirement.demand[:known], dtype=np.int64)
        free = self.node_free if requirement.holds else self.node_free + self.problem.node_held
        room = times_by_resources(free, need, requirement.most)
        for place, left in self._places():
            if place.holds and place.holds <= requirement.holds:
                room[place.nodes] = np.minimum(room[place.nodes], _times(left, need, requirement.most))
        if requirement.gpus:
            gpus = self._gpus(requirement)
            room = np.minimum(room, gpus // requirement.gpus)  # a job never holds a GPU twice
        if requirement.workers_per_node is not None:
            room = np.minimum(room, requirement.workers_per_node)
        return np.where(self.reachable(requirement), np.maximum(room, 0), 0)

    def _gpus(self, requirement: Requirement) -> IntArray:
        """Shape (N,): GPUs that could take a worker; the most of one part where all must be inside one."""
        problem, usable = self.problem, self.usable(requirement)
        if requirement.part_level is None:
            return np.bincount(problem.gpu_node[usable], minlength=problem.num_nodes)
        part = gpu_parts(problem.instance, problem.topology, requirement.part_level)
        inside = usable & (part >= 0)
        here = np.bincount(part[inside], minlength=int(part.max(initial=-1)) + 1)
        most = np.zeros(problem.num_nodes, dtype=np.int64)
        np.maximum.at(most, problem.gpu_node[inside], here[part[inside]])
        return most

    def distribution(
        self, requirement: Requirement, workers: int, per_node: IntArray, *, deadline: Deadline = FOREVER
    ) -> WorkerDistribution:
        """
        Return all ways to lay that many workers.

        ``per_node`` are the most that each node takes (`workers`); ``deadline`` as in `WorkerDistribution`.
        """
        problem, part = self.problem, requirement.link_part
        around = Surroundings(
            topology=problem.topology,
            domain_of=self.domains,
            splits=requirement.splits,
            spread=requirement.spread,
            eligible=self._eligible,
            single_node=requirement.on_one_node,
            mbps=requirement.network_mbps,
            link_room=(problem.link_mbps - self.link_load)[:, part],
            domain_takes={domain: self.takes(requirement, domain) for domain in self._limited_domains},
        )
        return WorkerDistribution(around, workers, per_node, deadline=deadline)

    def _eligible(self, split: Spread) -> frozenset[int]:
        """Return the domains of a split's level with a node that the job chooses."""
        domains = self.domains(split.level)[np.logical_and.reduce([self.open[choice] for choice in CHOICES])]
        return frozenset(domains[domains >= 0].tolist())

    def takes(self, requirement: Requirement, domain: int | None) -> int:
        """Most workers that a domain, None: the cluster, can take by its own amounts."""
        most = requirement.most
        need = np.array(requirement.demand[: self.node_free.shape[1]], dtype=np.int64)
        for place, left in self._places():
            if place.domain == domain and not place.holds:
                most = min(most, _times(left, need, most))
        return most

    @property
    def _limited_domains(self) -> list[int]:
        return [place.domain for place in self.problem.places if place.domain is not None]

    def _places(self) -> Iterator[tuple[Place, IntArray]]:
        """Yield the places and what is left of them."""
        for place, exempt in zip(self.problem.places, self.exempt, strict=True):
            yield place, place.left(self.problem, self.node_free, exempt)

    def reachable(self, requirement: Requirement) -> BoolArray:
        """Shape (N,): nodes that no barrier keeps the job off."""
        problem, flavor = self.problem, requirement.flavor
        reachable = problem.node_flavor == flavor if flavor >= 0 else np.ones(problem.num_nodes, dtype=bool)
        for barrier in requirement.barriers:
            reachable &= self.open[barrier]
        return reachable

    def queue_takes(self, requirement: Requirement) -> int:
        """Most workers that the job's queue may hold beside what it holds; -1: it is over its quota already."""
        most = requirement.most
        if requirement.queue >= 0:
            room = self.problem.queue_tree.room(self.queue_used, requirement.queue).tolist()
            for r, need in queue_use(requirement):
                left = room[r]
                most = min(most, max(left // need, -1)) if need else most
        return most


def _times(room: IntArray, need: IntArray, most: int) -> int:
    """Return how often ``need`` fits into ``room``, both (R,), at most ``most``."""
    return max(0, int(times_by_resources(room[None, :], need, most)[0]))


def queue_use(requirement: Requirement) -> list[tuple[int, int]]:
    """Columns of ``Problem.queue_tree``, and what one worker holds of a queue in each."""
    amounts = (requirement.gpus * requirement.milli, requirement.demand[CPU], requirement.demand[MEMORY])
    first = len(amounts) * (1 + requirement.flavor)
    return [*enumerate(amounts), *(enumerate(amounts, first) if requirement.flavor >= 0 else ())]


def free_capacity_of(state: State, job: Job) -> FreeCapacity:
    """Return what ``state`` leaves free to ``job``, which is not placed in it."""
    problem = state.problem
    exempt = tuple(place.exempt(state) for place in problem.places)
    return FreeCapacity(**state.arrays(), problem=problem, open=_open(problem, job), exempt=exempt)


def _open(problem: Problem, job: Job) -> dict[str, BoolArray]:
    """
    ``open[barrier]``, shape (N,).

    The nodes of a class agree on all that a job says of nodes together. So one node of each class tells where the job
    says one thing, and all nodes have to be asked where it says several.
    """
    every, asks = problem.instance.cluster.nodes, job.conditions
    several = sum(getattr(asks, choice) != getattr(ANY_NODE, choice) for choice in CHOICES) > 1
    nodes, of_node = (every, slice(None)) if several else (one_node_of_each_class(problem), problem.node_class)
    admission = Admission(nodes, effective_labels(problem.instance, nodes))
    return {barrier: mask[of_node] for barrier, mask in admission.open(job).items()}
