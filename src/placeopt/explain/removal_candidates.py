"""What can be given up for a job: other jobs, each as a whole, or single GPUs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from placeopt.explain.preemption import Cell, Gain, Items
from placeopt.explain.states import ExplainCase
from placeopt.feasibility.free_capacity import FreeCapacity, free_capacity_of
from placeopt.feasibility.requirement import Requirement
from placeopt.problem import RESOURCES, BoolArray, IntArray, Move, State, hose_loads

K = TypeVar("K")


@dataclass(frozen=True)
class Jobs:
    """
    Jobs that may leave, with all that they hold.

    ``last_first`` holds pairs (i, j) of positions in ``jobs``: i may only leave if j does.
    """

    case: ExplainCase
    state: State
    jobs: Sequence[int]
    prices: Sequence[int]
    last_first: Sequence[tuple[int, int]] = ()

    @property
    def count(self) -> int:
        """Number of items."""
        return len(self.jobs)

    @property
    def most(self) -> tuple[int, ...]:
        """How often each can be given up."""
        return (1,) * len(self.jobs)

    def room(self, given: Sequence[int]) -> FreeCapacity:
        """Return the room with ``given[i]`` of each item given up; leaves the state as it was."""
        undo = [self.state.apply(Move(job, None)) for job, gone in zip(self.jobs, given, strict=True) if gone]
        room = free_capacity_of(self.state, self.case.job)
        for move in reversed(undo):
            self.state.apply(move)
        return room

    def items(self, now: FreeCapacity, requirement: Requirement) -> Items:
        """Return what each job gives back of what ``requirement`` needs."""
        problem, options = self.case.problem, self.case.problem.options
        items = Items(list(self.prices), list(self.most), later=list(self.last_first))
        holders: dict[int, list[tuple[int, int, int]]] = {}  # GPU -> (item, milli, MiB)
        for item, job in enumerate(self.jobs):
            placement = self.state.placements[job]
            if placement is None:
                continue
            o = placement.option
            demand, milli = options.demand[o].tolist(), int(options.milli[o])
            for node, workers in Counter(placement.nodes).items():
                for r, each in enumerate(demand):
                    _give(items.node, (node, r), item, each * workers)
            for gpu in placement.gpus:
                holders.setdefault(gpu, []).append((item, milli, int(options.gpu_memory_mib[o])))
            if requirement.link_part == (0 if options.gpus[o] else 1) and options.network_mbps[o]:
                for kind, at, load in hose_loads(problem, placement):
                    _give(items.machine if kind == "machine" else items.domain, at, item, load)
            if requirement.queue >= 0 and problem.class_queue[problem.job_class[job]] == requirement.queue:
                workers = len(placement.nodes)
                cpu, memory = (workers * demand[RESOURCES.index(r)] for r in ("cpu_millicores", "memory_mib"))
                for r, amount in enumerate((milli * len(placement.gpus), cpu, memory)):
                    _give(items.queue, r, item, amount)
        items.cells = _cells(now, self.room(self.most).usable(requirement), requirement, holders)
        return items


@dataclass(frozen=True)
class Gpus:
    """
    Busy GPUs that may be freed, alike ones of a node counted together.

    A freed GPU is held by no job, and each worker that held it gives back its share of what it takes of the node: of
    CPU, memory and bandwidths 1/g-th, rounded down, if it holds g GPUs. Uplinks and queues stay as they are.
    """

    groups: tuple[tuple[int, ...], ...]
    back: tuple[tuple[int, ...], ...]  # (groups, R) given back by one GPU
    now: FreeCapacity

    @property
    def count(self) -> int:
        """Number of items."""
        return len(self.groups)

    @property
    def most(self) -> tuple[int, ...]:
        """How often each can be given up."""
        return tuple(len(gpus) for gpus in self.groups)

    @property
    def prices(self) -> tuple[int, ...]:
        """Every GPU counts one."""
        return (1,) * len(self.groups)

    def room(self, given: Sequence[int]) -> FreeCapacity:
        """Return the room with the first ``given[i]`` GPUs of each group freed."""
        now = self.now
        free, milli, memory, jobs = (a.copy() for a in (now.node_free, now.gpu_milli, now.gpu_memory, now.gpu_jobs))
        for count, gpus, back in zip(given, self.groups, self.back, strict=True):
            freed = list(gpus[:count])
            milli[freed], memory[freed], jobs[freed] = 1000, now.problem.gpu_memory_mib[freed], 0
            free[now.problem.gpu_node[gpus[0]]] += count * np.array(back, dtype=np.int64)
        return replace(now, node_free=free, gpu_milli=milli, gpu_memory=memory, gpu_jobs=jobs)

    def items(self, now: FreeCapacity, requirement: Requirement) -> Items:
        """Return what each group gives back of what ``requirement`` needs."""
        items = Items(list(self.prices), list(self.most))
        usable, suits = now.usable(requirement), now.gpu_suits(requirement)
        for item, (gpus, back) in enumerate(zip(self.groups, self.back, strict=True)):
            node = int(now.problem.gpu_node[gpus[0]])
            for r, amount in enumerate(back):
                _give(items.node, (node, r), item, amount)
            if suits[gpus[0]] and not usable[gpus[0]]:
                items.cells.append(Cell(node, len(gpus), ((1, 0, ((item, 1),)),)))
        return items


def busy_gpus(case: ExplainCase, state: State, requirements: Sequence[Requirement]) -> Gpus:
    """Return the busy GPUs of nodes that some of ``requirements`` may use, alike ones together."""
    problem, options = case.problem, case.problem.options
    now = free_capacity_of(state, case.job)
    back: dict[int, IntArray] = {}
    for placement in state.placements:
        if placement is not None and placement.gpus:
            each = options.demand[placement.option] // max(1, int(options.gpus[placement.option]))
            for gpu in placement.gpus:
                back[gpu] = back.get(gpu, np.zeros(len(RESOURCES), dtype=np.int64)) + each
    reachable: BoolArray = np.any([now.reachable(requirement) for requirement in requirements], axis=0)
    kinds = [(now.usable(requirement), now.gpu_suits(requirement)) for requirement in requirements]
    groups: dict[tuple[object, ...], list[int]] = {}
    for gpu in sorted(back):
        node = int(problem.gpu_node[gpu])
        if reachable[node]:
            alike = tuple((bool(usable[gpu]), bool(suits[gpu])) for usable, suits in kinds)
            groups.setdefault((node, alike, tuple(back[gpu].tolist())), []).append(gpu)
    members = tuple(tuple(gpus) for gpus in groups.values())
    return Gpus(members, tuple(tuple(back[gpus[0]].tolist()) for gpus in members), now)


def _give(gains: dict[K, list[Gain]], key: K, item: int, amount: int) -> None:
    if amount:
        gains.setdefault(key, []).append((item, amount))


def _cells(
    now: FreeCapacity, usable_then: BoolArray, requirement: Requirement, holders: dict[int, list[tuple[int, int, int]]]
) -> list[Cell]:
    """GPUs that become usable; alike ones together where every holder must go for the job to come."""
    problem = now.problem
    alone = (problem.shares_bind and requirement.milli == 1000) or requirement.jobs_per_gpu == 1
    blocked = usable_then & ~now.usable(requirement)
    piles: dict[tuple[int, tuple[int, ...]], int] = {}
    cells: list[Cell] = []
    for gpu in np.flatnonzero(blocked).tolist():
        node, held = int(problem.gpu_node[gpu]), holders[gpu]
        if alone:
            key = node, tuple(sorted(item for item, _, _ in held))
            piles[key] = piles.get(key, 0) + 1
            continue
        limits = []
        if problem.shares_bind:
            milli = tuple((item, share) for item, share, _ in held)
            limits.append((requirement.milli, int(now.gpu_milli[gpu]), milli))
        if requirement.gpu_memory_mib:
            memory = tuple((item, mib) for item, _, mib in held if mib)
            limits.append((requirement.gpu_memory_mib, int(now.gpu_memory[gpu]), memory))
        if requirement.jobs_per_gpu is not None:
            limits.append(
                (1, requirement.jobs_per_gpu - int(now.gpu_jobs[gpu]), tuple((item, 1) for item, _, _ in held))
            )
        cells.append(Cell(node, 1, tuple(limits)))
    for (node, items), size in piles.items():
        cells.append(Cell(node, size, tuple((1, 0, ((item, size),)) for item in items)))
    return cells
