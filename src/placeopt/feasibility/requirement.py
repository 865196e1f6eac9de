"""The requirements of a job: one record an option, and groups of constraints that can be dropped from it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from placeopt.model import Job, Node, Option, Split, Spread
from placeopt.model.conditions import ANY_NODE
from placeopt.model.machine import NODE_AMOUNTS, PART_LEVELS
from placeopt.problem import Problem
from placeopt.problem.arrays import resource_demand, unknown_resources
from placeopt.problem.classes import BARRIERS, exempt_of
from placeopt.problem.queues import flavors_of_queue

RESOURCE_GROUPS = tuple(amount.group for amount in NODE_AMOUNTS)
"""Groups of the resources of a node, in the order of ``placeopt.problem.RESOURCES``; see `Requirement.resources`."""
NAMED = "resource:"
"""Start of the group of a named resource, as in ``resource:licence``."""

WITHOUT: dict[str, dict[str, Any]] = {
    "utility": {"useful": True},
    "queue": {"queue": -1, "flavor": -1},
    "hold": {"holds": frozenset()},
    **{barrier: {} for barrier in BARRIERS},
    **{group: {} for group in RESOURCE_GROUPS if group not in ("memory", "cpu")},
    "network_bandwidth": {"network_mbps": 0},
    "jobs_per_gpu": {"jobs_per_gpu": None},
    "gpu_memory": {"gpu_memory_mib": 0},
    "gpu_model": {"gpu_models": ()},
    "gpu_profile": {"gpu_profile": None, "any_geometry": True},
    "resource": {},
    "memory": {},
    "cpu": {},
    "gpu_share": {"milli": 1},
    "workers_per_node": {"workers_per_node": None},
    "single_node": {"single_node": False},
    "split": {},
    "gang": {"fewest": 1},
    "gpu_count": {
        "gpus": 0,
        "milli": 1000,
        "gpu_memory_mib": 0,
        "gpu_models": (),
        "gpu_profile": None,
        "any_geometry": True,
    },
}
"""
Group -> fields of a requirement that is free of it; of groups without fields `Requirement.without` computes them.

In the order in which a conflict tries to do without them: of several irreducible sets the one stays that is made of the
last ones, what a job is, rather than what happens to be said about it.
"""
OF_GPUS = ("jobs_per_gpu", "gpu_memory", "gpu_model", "gpu_profile", "gpu_count")
"""Groups that say something of GPUs, if there are any."""
OF_GANGS = ("network_bandwidth", "single_node")
"""Groups that say something of several workers, if there are any."""


@dataclass(frozen=True)
class Requirement:
    """
    One option of a job: any number of workers from ``fewest`` to ``most``, each with these demands.

    An edit of the job's record is an edit of this. A split with a stated number of workers means: equally many in each
    of its domains; so it also says what a smaller gang would have to do.
    """

    option: str
    value: int
    value_per_worker: int
    """Value that each worker below ``most`` takes away."""
    fewest: int
    most: int
    gpus: int
    milli: int
    gpu_models: tuple[str, ...]
    gpu_profile: str | None
    gpu_memory_mib: int
    demand: tuple[int, ...]  # of one worker: (R,), then the resources that no node has
    named: tuple[str, ...]  # names of ``demand[4:]``
    network_mbps: int
    link_part: int
    """0: its traffic uses the part of a link that GPU jobs may use, 1: that of CPU jobs."""
    single_node: bool
    workers_per_node: int | None
    splits: tuple[Split, ...]
    spread: tuple[Spread, ...] = ()
    part_level: str | None = None
    """The part of a machine that holds all its GPUs."""
    barriers: tuple[str, ...] = ()
    """Which of `BARRIERS` may keep it off nodes."""
    queue: int = -1
    flavor: int = -1
    """The flavor of nodes that its queue is charged for, of which all its nodes are; -1: any nodes."""
    holds: frozenset[str] = frozenset()
    """Ids of the holds that count against it."""
    jobs_per_gpu: int | None = None
    any_geometry: bool = False
    """Whether it takes GPUs whatever their profiles are, as it does where none has any."""
    useful: bool = True
    """False where its utility is below the job's minimum: it may not run anywhere."""

    def worth(self, workers: int) -> int:
        """Value with that many workers; a gang made smaller keeps its value."""
        return self.value - max(0, self.most - max(workers, self.fewest)) * self.value_per_worker

    @property
    def levels(self) -> list[str]:
        """Levels that splits and spreads name."""
        own = [] if self.part_level is None else [self.part_level]
        return [*(split.level for split in self.splits), *(one.level for one in self.spread), *own]

    @property
    def on_one_node(self) -> bool:
        """Whether all workers share a node."""
        return self.single_node or self.part_level is not None

    @property
    def resources(self) -> tuple[str, ...]:
        """The group of each resource in ``demand``; of named ones ``resource:NAME``."""
        return (*RESOURCE_GROUPS, *(NAMED + name for name in self.named))

    @cached_property
    def groups(self) -> tuple[str, ...]:
        """The groups of constraints that it has; those of ``split`` and ``resource`` as ``split:rack``."""
        named = self.resources[len(RESOURCE_GROUPS) :]
        many = {"split": [f"split:{level}" for level in self.levels], "resource": named}
        groups = dict.fromkeys(name for group in WITHOUT for name in many.get(group, (group,)))
        return tuple(group for group in groups if self._counts(group) and self.without(group) != self)

    def _counts(self, group: str) -> bool:
        """Whether a group can keep it off, if it is stated."""
        if group == "workers_per_node":
            return self.workers_per_node is not None and self.workers_per_node < self.most
        return not (group in OF_GPUS and not self.gpus) and not (group in OF_GANGS and self.most < 2)

    def without(self, group: str) -> Requirement:
        """
        Return the requirement without a group: never more demanding, and possible as a job's record of its own.

        ``gpu_count``: no GPUs at all; ``gpu_share``: 1/1000 of the GPU; ``gang``: any smaller number of workers.
        """
        if group.startswith("split:"):
            level = group.removeprefix("split:")
            splits = tuple(split for split in self.splits if split.level != level)
            spread = tuple(one for one in self.spread if one.level != level)
            part_level = None if self.part_level == level else self.part_level
            return replace(self, splits=splits, spread=spread, part_level=part_level)
        if group in BARRIERS:
            return replace(self, barriers=tuple(barrier for barrier in self.barriers if barrier != group))
        if group in self.resources:
            dropped = self.resources.index(group)
            return replace(self, demand=tuple(0 if r == dropped else a for r, a in enumerate(self.demand)))
        if group.startswith(NAMED) or (group == "gpu_share" and self.gpus != 1):
            return self
        return replace(self, **WITHOUT[group])

    def resized(self, workers: int) -> Requirement:
        """Return the same as a gang of that many workers."""
        return replace(self, fewest=workers, most=workers)

    def resized_from(self, workers: int) -> Requirement:
        """Return the same with exactly that many workers, as valuable as it is with them."""
        return replace(self.resized(workers), value=self.worth(workers), value_per_worker=0)

    def spread_over(self, level: str, domains: int) -> Requirement:
        """Return the same with another number of domains of ``level``."""
        splits = tuple(
            Split(level=level, domains=domains, workers=None if split.workers is None else max(1, self.most // domains))
            if split.level == level
            else split
            for split in self.splits
        )
        return replace(self, splits=splits)


def requirements_of(problem: Problem, job: Job) -> tuple[Requirement, ...]:
    """Return the requirements of the options of ``job``, the most valuable first."""
    queues = {queue.id: i for i, queue in enumerate(problem.policy.queues)}
    queue = queues.get(job.queue, -1) if job.queue is not None else -1
    barriers = _barriers(problem, job)
    holds = problem.instance.hold_kinds.values()
    counted = frozenset(hold.id for hold in holds) - exempt_of(job, holds, problem.instance.now_ms)
    requirements = [
        replace(_requirement(problem, option, job, queue, barriers, counted), flavor=flavor)
        for option in job.options
        for flavor in flavors_of_queue(problem.policy, job.queue) or (-1,)
    ]
    return tuple(sorted(requirements, key=lambda requirement: -requirement.worth(requirement.most)))


def one_node_of_each_class(problem: Problem) -> list[Node]:
    """Return the first node of each class of nodes, in the order of the classes."""
    _, firsts = np.unique(problem.node_class, return_index=True)
    return [problem.instance.cluster.nodes[n] for n in firsts]


def _requirement(
    problem: Problem, option: Option, job: Job, queue: int, barriers: tuple[str, ...], holds: frozenset[str]
) -> Requirement:
    known = problem.named_resources
    named = (*known, *unknown_resources(option.demand, known))
    demand, utility, least = option.demand, option.utility_thousandths, job.utility_min_thousandths
    return Requirement(
        option=option.id,
        value=option.value,
        value_per_worker=option.value_per_worker,
        fewest=option.fewest,
        most=option.workers,
        gpus=demand.gpus,
        milli=demand.gpu_milli,
        gpu_models=demand.gpu_models,
        gpu_profile=demand.gpu_profile,
        any_geometry=not any(problem.type_geometry) and demand.gpu_profile is None,
        gpu_memory_mib=demand.gpu_memory_mib,
        demand=resource_demand(demand, named),
        named=named,
        network_mbps=demand.network_bandwidth_mbps,
        link_part=0 if demand.gpus else 1,
        single_node=option.single_node,
        workers_per_node=option.workers_per_node_max,
        splits=tuple(s for s in problem.given.cluster.splits_of(option) if s.level not in PART_LEVELS),
        part_level=option.part_level,
        spread=option.spread,
        barriers=barriers,
        queue=queue,
        holds=holds,
        jobs_per_gpu=problem.jobs_per_gpu,
        useful=utility is None or least is None or utility >= least,
    )


def _barriers(problem: Problem, job: Job) -> tuple[str, ...]:
    nodes = one_node_of_each_class(problem)
    stand = {
        "drained": any(node.drained for node in nodes),
        "taints": any(node.taints for node in nodes),
        **{field: getattr(job.conditions, field) != free for field, free in ANY_NODE},
    }
    return tuple(barrier for barrier in BARRIERS if stand[barrier])
