"""What problems and states are made of: arrays, the options of the jobs, placements in indices, what is free."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from placeopt.model import Demand, Hold, Split, Spread
from placeopt.model.machine import NODE_AMOUNTS

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]

RESOURCES = tuple(amount.field for amount in NODE_AMOUNTS)
"""
Additive resources of a node, first on the last axis of every resource array.

Named resources follow (``Hardware.named_resources``): R is their number and one for each name that a machine type
states.
"""

CPU, MEMORY = RESOURCES.index("cpu_millicores"), RESOURCES.index("memory_mib")

GPU_MILLI = 1000
"""Thousandths of a GPU."""

UNLIMITED = 1 << 50
"""Capacity of what is never a limit. Above any sum that the model's bounds admit, far below 2^63."""


def resource_demand(demand: Demand, named: tuple[str, ...]) -> tuple[int, ...]:
    """Shape (R,): what one worker takes of the resources of a node; ``named``: ``Hardware.named_resources``."""
    return (*(getattr(demand, name) for name in RESOURCES), *(demand.resources.get(name, 0) for name in named))


def held_amounts(hold: Hold, named: tuple[str, ...]) -> list[int]:
    """Shape (R,): what a hold keeps of the resources of its node."""
    return [*(getattr(hold, name, 0) for name in RESOURCES), *(hold.resources.get(name, 0) for name in named)]


def unknown_resources(demand: Demand, named: tuple[str, ...]) -> tuple[str, ...]:
    """Return the named resources that are needed and that no machine type states: no node has any of them."""
    return tuple(name for name, amount in demand.resources.items() if amount and name not in named)


class Frozen:
    """Makes the array fields of a dataclass read-only once it is built."""

    def __post_init__(self) -> None:
        """Lock every array."""
        for field in fields(self):  # type: ignore[arg-type]  # only dataclasses inherit this
            value = getattr(self, field.name)
            if isinstance(value, np.ndarray):
                value.setflags(write=False)


@dataclass(frozen=True, slots=True)
class Placement:
    """
    The option taken and where each worker is.

    ``nodes`` has one node a worker, in rank order; ``gpus`` the global GPU indices, worker after worker, as many a
    worker as the option says. Of each GPU the job's request counts; what is granted above it is worked out where
    placements are written (``grants``). ``restarts`` marks the move of a running job to a part of its own GPUs, which
    could be taken for a shrink. ``starts`` are the first slots of a running job's shares of GPUs with profiles;
    shares that are placed in a round have theirs only when placements are written (``starts``).
    """

    option: int
    nodes: tuple[int, ...]
    gpus: tuple[int, ...]
    restarts: bool = False
    starts: tuple[int, ...] = ()


Tenant = tuple[int, tuple[int, ...]]
"""Profile, -1 for none, and GPUs held on a node."""
Allocation = tuple[Placement | None, ...]
"""One entry a job, in the order of ``Problem.job_ids``; None: the job waits, or is preempted."""


@dataclass(frozen=True, eq=False)
class Options(Frozen):
    """
    All ways in which the job classes may run: one row an option and number of workers, O rows.

    An elastic option is one row per number of workers; where a queue has flavors, there is a row for each, too. A
    *bundle* is what lands on one node together: all workers of a single-node option, one worker otherwise.
    """

    job_class: IntArray  # (O,)
    name: tuple[str, ...]  # (O,) the option's id in the file
    flavor: IntArray  # (O,) flavor of the nodes that its job's queue is charged for, -1 without
    value: IntArray  # (O,)
    cost_milli: IntArray  # (O,)
    workers: IntArray  # (O,)
    bundles: IntArray  # (O,) number of bundles: 1 where single-node
    gpus: IntArray  # (O,) GPUs of one worker
    milli: IntArray  # (O,) requested share of each GPU
    gpu_profile: tuple[str | None, ...]  # (O,) of the GPU's geometry
    gpu_memory_mib: IntArray  # (O,) of each GPU
    utilisation: IntArray  # (O,) expected percent of each GPU
    demand: IntArray  # (O, R) of one worker
    network_mbps: IntArray  # (O,) of one worker
    workers_per_node: IntArray  # (O,) at most; the number of workers where nothing is said
    splits: tuple[tuple[Split, ...], ...]  # (O,)
    spread: tuple[tuple[Spread, ...], ...]  # (O,)
    part_level: tuple[str | None, ...]  # (O,) part of a machine that holds all GPUs of a job, None where any may
    gpu_type_ok: BoolArray  # (O, T)
    node_class_ok: BoolArray  # (O, C) whether one bundle fits on an idle node of the class

    def __len__(self) -> int:
        """O, the number of options."""
        return len(self.name)

    @cached_property
    def lies(self) -> list[tuple[Split | Spread, ...]]:
        """Of each option how its workers are divided among domains."""
        return [(*splits, *spread) for splits, spread in zip(self.splits, self.spread, strict=True)]

    @cached_property
    def grants(self) -> list[tuple[int, int, int]]:
        """Of each option what one GPU is asked for, as plain integers: thousandths, memory, percent of utilisation."""
        return list(zip(self.milli.tolist(), self.gpu_memory_mib.tolist(), self.utilisation.tolist(), strict=True))

    @cached_property
    def shapes(self) -> list[tuple[str, int, int]]:
        """Of each option, as plain integers: name, workers, GPUs of one worker."""
        columns = (self.workers.tolist(), self.gpus.tolist())
        return list(zip(self.name, *columns, strict=True))

    @cached_property
    def kinds(self) -> list[tuple[str, int]]:
        """Id and flavor of each option: rows of one class that are equal in both differ in their number of workers."""
        return list(zip(self.name, self.flavor.tolist(), strict=True))

    @cached_property
    def profile_number(self) -> IntArray:
        """Shape (O,): equal for two options just if they take one profile of a GPU, or none."""
        numbers: dict[str | None, int] = {}
        return np.array([numbers.setdefault(name, len(numbers)) for name in self.gpu_profile], dtype=np.int64)

    @cached_property
    def numbers(self) -> dict[tuple[int, str, int, int], int]:
        """Class of jobs, id of an option, number of workers and flavor -> the first such row."""
        rows = zip(self.job_class.tolist(), self.name, self.workers.tolist(), self.flavor.tolist(), strict=True)
        found: dict[tuple[int, str, int, int], int] = {}
        for option, key in enumerate(rows):
            found.setdefault(key, option)
        return found

    @cached_property
    def bundle_workers(self) -> IntArray:
        """Shape (O,): workers in one bundle."""
        return self.workers // self.bundles

    @cached_property
    def bundle_gpus(self) -> IntArray:
        """Shape (O,): GPUs of one bundle."""
        return self.gpus * self.bundle_workers

    @cached_property
    def total_milli(self) -> IntArray:
        """Shape (O,): GPU share that the whole job asks for, in thousandths of a GPU."""
        return self.workers * self.gpus * self.milli


@dataclass(eq=False)
class Room:
    """Free amounts, below 0 where running jobs exceed them, and counts of what is held."""

    node_free: IntArray  # (N, R)
    gpu_free_milli: IntArray  # (G,) below 0 where overcommitted
    gpu_free_memory: IntArray  # (G,)
    gpu_jobs: IntArray  # (G,) number of jobs on it
    gpu_utilisation: IntArray  # (G,) cumulative percent
    gpu_slots: IntArray  # (G,) load of each GPU with profiles, as in `placeopt.problem.gpu_slots`
    level_free: list[IntArray]  # of each level of fragmentation, (domains,)
    link_load: IntArray  # (N + D, 2) hose load of the uplinks of nodes and domains, by GPU jobs and CPU jobs
    queue_used: IntArray  # (queues, A) what each counts with

    def arrays(self) -> dict[str, Any]:
        """Return copies of the arrays, by name."""
        return {field.name: deepcopy(getattr(self, field.name)) for field in fields(Room)}


@dataclass(frozen=True, eq=False)
class BaseLoad:
    """
    The room that jobs leave which run and which a problem does not list: every state of the problem begins with it.

    A round in which running jobs stay as they are needs no more of them than this: it is solved for the waiting jobs
    alone, in time that does not grow with what runs.
    """

    room: Room
    tenants: Sequence[dict[Tenant, int]]  # by node; empty where none disturbs
