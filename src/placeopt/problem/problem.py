"""The compiled problem: read-only integer arrays over nodes, GPUs, job classes and options."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from placeopt.model import Communication, Instance, Job, Policy, Running
from placeopt.problem.arrays import CPU, MEMORY, BaseLoad, BoolArray, Frozen, IntArray, Options, Placement
from placeopt.problem.classes import Admission, effective_labels
from placeopt.problem.grants import has_limit
from placeopt.problem.growth import best_paths
from placeopt.problem.hardware import Hardware, gpu_parts
from placeopt.problem.places import Place, find_places
from placeopt.problem.queues import AMOUNTS, QueueTree
from placeopt.problem.relations import Relations, compile_relations
from placeopt.problem.target import Target
from placeopt.problem.tree import Tree


@dataclass(frozen=True, eq=False)
class Classes(Frozen):
    """
    The requests of K job classes, whatever the job, and the nodes that may serve them. P profiles.

    Jobs of a class ask for the same in every respect that rules, costs and values see; nodes of a class offer the
    same while idle.
    """

    node_class: IntArray  # (N,)
    class_option_start: IntArray  # (K + 1,) options of class k are class_option_start[k] up to [k + 1]
    class_communication: tuple[Communication, ...]  # (K,)
    class_profile: IntArray  # (K,) row in the slowdown table, -1 without
    class_queue: IntArray  # (K,) row in policy.queues, -1 without
    class_utility_min: IntArray  # (K,) thousandths, -1 without
    class_exempt: tuple[frozenset[str], ...]  # (K,) those that do not count against it, one of each kind
    class_member: tuple[Job, ...]  # (K,) a job of each class, whether or not it is in the round
    options: Options
    slowdown: IntArray  # (4, P, P) excess in thousandths at gpu, switch, socket, node
    split_domain: dict[str, IntArray]  # level that a split names -> (N,) domain of it above each node, -1 without


@dataclass(frozen=True, eq=False)
class Jobs(Frozen):
    """The J jobs, and the changes of running ones that policy and job allow."""

    job_ids: tuple[str, ...]
    job_class: IntArray  # (J,)
    job_arrival_ms: IntArray  # (J,)
    job_priority: IntArray  # (J,)
    may_move: frozenset[int]
    may_shrink: frozenset[int]  # those above the minimum of their option
    may_preempt: frozenset[int]


class Neighbours(NamedTuple):
    """Lists of a problem's arrays."""

    switch: list[int]  # of every GPU
    socket: list[int]  # of every GPU
    profile: list[int]  # of every job
    slowdown: list[list[list[int]]]  # profile that feels it, profile that causes it, level


@dataclass(frozen=True, eq=False)
class Problem(Hardware, Classes, Jobs):
    """One round, compiled: hardware, classes, jobs, and what runs. ``state.State`` holds what is used."""

    instance: Instance
    """What is compiled: ``given``, with stand-ins for what jobs run on and the cluster does not list (`find_lost`)."""
    given: Instance
    policy: Policy
    node_schedulable: BoolArray  # (N,) not drained
    target: Target  # the workload that fragmentation ``fgd`` is measured against
    running: dict[int, Placement]  # job -> where it runs now
    base_load: BaseLoad | None = None  # what jobs hold that run and are not listed, where they stay as they are
    trees: tuple[Tree, ...] = ()  # jobs of ``given`` whose members are jobs here

    @cached_property
    def gpu_part(self) -> dict[str, IntArray]:
        """Of each level inside machines that some option names, (G,): the number of the part, -1 without."""
        levels = {level for level in self.options.part_level if level is not None}
        return {level: gpu_parts(self.instance, self.topology, level) for level in levels}

    @cached_property
    def tree_of(self) -> dict[int, Tree]:
        """The tree of each member of one."""
        return {member: tree for tree in self.trees for member in tree.members}

    @cached_property
    def admission(self) -> Admission:
        """Which nodes admit a job by its conditions."""
        return Admission(self.instance.cluster.nodes, effective_labels(self.instance))

    @cached_property
    def relations(self) -> Relations:
        """Relations between jobs."""
        return compile_relations(self)

    @cached_property
    def has_geometry(self) -> bool:
        """Whether some option takes a profile of a GPU, be it one without a name."""
        unnamed = any(profile.id is None for geometry in self.type_geometry for profile in geometry)
        return unnamed or any(name is not None for name in self.options.gpu_profile)

    @cached_property
    def is_plain(self) -> bool:
        """Whether nothing binds jobs that only greedy and exact models support: trees, spread, relations, slots."""
        related = any(relation.weight is None for job in self.class_member for relation in job.relations)
        return self.lies_freely and not related

    @cached_property
    def lies_freely(self) -> bool:
        """Whether nothing but relations binds jobs that only greedy and exact models support."""
        lies = any(self.options.spread) or any(self.options.part_level)
        return not (self.trees or lies or self.has_geometry)

    @cached_property
    def changeable(self) -> frozenset[int]:
        """Running jobs to which anything may be done at all."""
        return self.may_move | self.may_shrink | self.may_preempt

    @cached_property
    def best_path(self) -> IntArray:
        """Shape (O,): path length between all pairs of an option's GPUs where they are as close as they can be."""
        return best_paths(self.topology, self.options, self.gpu_type)

    @cached_property
    def running_records(self) -> dict[int, Running]:
        """Running job -> its placement as the instance writes it."""
        number = {self.job_ids[job]: job for job in self.running}
        return {number[record.job]: record for record in self.instance.running if record.job in number}

    @property
    def num_nodes(self) -> int:
        """N."""
        return len(self.node_ids)

    @property
    def num_gpus(self) -> int:
        """G."""
        return len(self.gpu_type)

    @property
    def num_listed_gpus(self) -> int:
        """GPUs that the cluster lists: all but the stand-ins for lost ones."""
        return self.num_gpus - int(self.type_lost[self.gpu_type].sum())

    @property
    def num_jobs(self) -> int:
        """J."""
        return len(self.job_ids)

    @property
    def num_classes(self) -> int:
        """K."""
        return len(self.class_communication)

    @cached_property
    def jobs_per_class(self) -> IntArray:
        """Shape (K,): jobs of each class."""
        return np.bincount(self.job_class, minlength=self.num_classes)

    @cached_property
    def first_options(self) -> tuple[IntArray, IntArray]:
        """The classes that have an option, and the first option of each."""
        classes = np.flatnonzero(np.diff(self.class_option_start) > 0)
        return classes, self.class_option_start[classes]

    def most_of_class(self, of_options: IntArray) -> IntArray:
        """Shape (K,): largest value, from 0 on, of the options of each class; ``of_options`` has shape (O,)."""
        most = np.zeros(self.num_classes, dtype=np.int64)
        np.maximum.at(most, self.options.job_class, of_options)
        return most

    @property
    def gpu_node(self) -> IntArray:
        """Shape (G,): the node of each GPU."""
        return self.topology.gpu_node

    @property
    def node_gpu_start(self) -> IntArray:
        """Shape (N + 1,): the GPUs of node n are node_gpu_start[n] up to [n + 1]."""
        return self.topology.node_gpu_start

    @cached_property
    def first_gpu(self) -> list[int]:
        """``node_gpu_start`` as plain integers, for loops over placements."""
        starts: list[int] = self.node_gpu_start.tolist()
        return starts

    @property
    def jobs_per_gpu(self) -> int | None:
        """Most jobs that may hold one GPU; None is no limit."""
        return 1 if self.policy.share_mode == "exclusive" else self.policy.jobs_per_gpu_max

    @property
    def gpus_are_shared(self) -> bool:
        """Whether two jobs can be on one GPU, running ones included."""
        return self.jobs_per_gpu != 1 or self.max_running_per_gpu > 1

    @cached_property
    def neighbours(self) -> Neighbours:
        """What jobs on a node do to each other depends on, as plain integers, for loops over placements."""
        profile = self.class_profile[self.job_class]
        arrays = (self.gpu_switch, self.gpu_socket, profile, self.slowdown.transpose(1, 2, 0))
        return Neighbours(*(array.tolist() for array in arrays))

    @cached_property
    def max_running_per_gpu(self) -> int:
        """Most running jobs on one GPU; may be above ``jobs_per_gpu`` where the policy changed."""
        count = Counter(gpu for held in self.running.values() for gpu in held.gpus)
        return max(count.values(), default=0)

    @cached_property
    def held_types(self) -> BoolArray:
        """Shape (O, T): whether a running job in the option holds a GPU of the type, even one that no job may."""
        held = np.zeros((len(self.options), len(self.type_model)), dtype=bool)
        for placement in self.running.values():
            held[placement.option, self.gpu_type[list(placement.gpus)]] = True
        return held

    @cached_property
    def queue_tree(self) -> QueueTree:
        """What each queue of the policy may hold."""
        node = (int((self.node_capacity + self.node_held)[:, resource].sum()) for resource in (CPU, MEMORY))
        return QueueTree.of(self.policy, [1000 * self.num_listed_gpus, *node])

    @cached_property
    def queue_use(self) -> IntArray:
        """Shape (O, A): what a whole job holds of its queue, in the columns of `queue_tree`."""
        options, kinds = self.options, len(AMOUNTS)
        node = options.demand[:, [CPU, MEMORY]] * options.workers[:, None]
        use = np.zeros((len(options), kinds * (1 + len(self.policy.flavors))), dtype=np.int64)
        use[:, :kinds] = np.concatenate([options.total_milli[:, None], node], axis=1)
        for f in range(len(self.policy.flavors)):
            use[:, kinds * (1 + f) : kinds * (2 + f)] = np.where((options.flavor == f)[:, None], use[:, :kinds], 0)
        return use

    @property
    def shares_bind(self) -> bool:
        """Whether the shares on a GPU must sum to at most 1000."""
        return self.policy.share_mode != "overcommit"

    @cached_property
    def has_limits(self) -> bool:
        """Whether anything can be granted above a request (``grants``)."""
        return self.policy.share_mode == "fraction" and any(map(has_limit, self.class_member))

    @cached_property
    def places(self) -> tuple[Place, ...]:
        """Limits on what jobs take together in domains, in the cluster, and beside holds that some may use."""
        return find_places(self)

    @property
    def has_shared_limits(self) -> bool:
        """Whether limits beyond nodes, GPUs and uplinks may bind: quotas, amounts of places, and slots of GPUs."""
        return bool(self.policy.queues or self.places or self.has_geometry)

    def options_of(self, job: int) -> range:
        """Return the rows of ``options`` open to ``job``."""
        k = self.job_class[job]
        return range(int(self.class_option_start[k]), int(self.class_option_start[k + 1]))

    def node_ok(self, option: int) -> BoolArray:
        """Shape (N,): nodes on which one bundle of ``option`` fits while they are idle."""
        allowed: BoolArray = self.options.node_class_ok[option][self.node_class]
        return allowed

    def gpu_ok(self, option: int) -> BoolArray:
        """Shape (G,): GPUs that ``option`` may hold while they are idle."""
        allowed: BoolArray = self.options.gpu_type_ok[option][self.gpu_type]
        return allowed
