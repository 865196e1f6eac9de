"""What others can give up for a job, jobs or GPUs, and the cheapest set of it; verified both ways."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from placeopt.deadline import Deadline
from placeopt.errors import OutOfTime, SolverFault
from placeopt.explain.preemption import Cell, Gain, Items, making_room
from placeopt.explain.question import ExplainCase, Question
from placeopt.explain.records import Rival
from placeopt.feasibility.fit import ceiling, fit, sizes
from placeopt.feasibility.free_capacity import FreeCapacity, free_capacity_of
from placeopt.feasibility.requirement import Requirement
from placeopt.problem import BoolArray, IntArray, Move, State, hose_loads
from placeopt.solvers.result import SolveOptions
from placeopt.solving.runners import Solve

K = TypeVar("K")
MAX_PRICE = 2**50


@dataclass(frozen=True)
class RemovableJobs:
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

    def leaving(self, given_up: GivenUp) -> list[int]:
        """Return the jobs that leave."""
        return [job for job, gone in zip(self.jobs, given_up.given, strict=True) if gone]

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
            queue = int(problem.class_queue[problem.job_class[job]])
            for r, amount in enumerate(problem.queue_use[o].tolist() if queue >= 0 else ()):
                _give(items.queue, (queue, r), item, amount)
        items.cells = _cells(now, self.room(self.most).usable(requirement), requirement, holders)
        return items


@dataclass(frozen=True)
class FreeableGpus:
    """
    Busy GPUs that may be freed, alike ones of a node counted together.

    A freed GPU is held by no job, and each worker that held it gives back its share of what it takes of the node: of
    CPU, memory and all else 1/g-th, rounded down, if it holds g GPUs. Uplinks and queues stay as they are.
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


def busy_gpus(case: ExplainCase, state: State, requirements: Sequence[Requirement]) -> FreeableGpus:
    """Return the busy GPUs of nodes that some of ``requirements`` may use, alike ones together."""
    problem, options = case.problem, case.problem.options
    now = free_capacity_of(state, case.job)
    back: dict[int, IntArray] = {}
    for placement in state.placements:
        if placement is not None and placement.gpus:
            each = options.demand[placement.option] // max(1, int(options.gpus[placement.option]))
            for gpu in placement.gpus:
                back[gpu] = back.get(gpu, np.zeros_like(each)) + each
    reachable: BoolArray = np.any([now.reachable(requirement) for requirement in requirements], axis=0)
    kinds = [(now.usable(requirement), now.gpu_suits(requirement)) for requirement in requirements]
    groups: dict[tuple[object, ...], list[int]] = {}
    for gpu in sorted(back):
        node = int(problem.gpu_node[gpu])
        if reachable[node]:
            alike = tuple((bool(usable[gpu]), bool(suits[gpu])) for usable, suits in kinds)
            groups.setdefault((node, alike, tuple(back[gpu].tolist())), []).append(gpu)
    members = tuple(tuple(gpus) for gpus in groups.values())
    return FreeableGpus(members, tuple(tuple(back[gpus[0]].tolist()) for gpus in members), now)


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


@dataclass(frozen=True)
class GivenUp:
    """What is given up, one number an item; in which option the job then fits; whether less is proven not to do."""

    option: str
    workers: int
    given: tuple[int, ...]
    price: int
    proven: bool


def least_given_up(
    candidates: RemovableJobs | FreeableGpus, requirements: Sequence[Requirement], solve: Solve, deadline: Deadline
) -> GivenUp | None:
    """
    Return the cheapest set that lets one of ``requirements`` in; None if all of it together would not.

    `placeopt.feasibility.fit` verifies that it suffices, and that nothing of it can be kept. That no cheaper set does
    rests on the solver's proof. Raises ``OutOfTime`` if the solver found nothing by the deadline, ``SolverFault`` if
    its result does not make room.
    """
    now = candidates.room([0] * candidates.count)
    free = candidates.room(candidates.most)
    best: GivenUp | None = None
    for requirement in requirements:
        per_node = free.workers(requirement)
        items = candidates.items(now, requirement)
        for workers in sizes(requirement, ceiling(free, requirement, per_node)):
            if free.distribution(requirement, workers, per_node, deadline=deadline).fits:
                candidate = _least(candidates, now, free, requirement.resized(workers), items, solve, deadline)
                if best is None or candidate.price < best.price:
                    best = replace(candidate, proven=candidate.proven and (best is None or best.proven))
                elif not candidate.proven:
                    best = replace(best, proven=False)
    return best


def _least(
    candidates: RemovableJobs | FreeableGpus,
    now: FreeCapacity,
    free: FreeCapacity,
    requirement: Requirement,
    items: Items,
    solve: Solve,
    deadline: Deadline,
) -> GivenUp:
    model, columns = making_room(now, free, requirement, requirement.most, items, deadline)
    deadline.check("what others could give up was looked for")
    solution = solve("highs", model, SolveOptions(time_limit_s=deadline.left_s))
    if solution.values is None:
        if solution.limit == "none":
            raise SolverFault(f"no way to make room was found, though there is one: {solution.message}")
        raise OutOfTime("stopped while looking for what others could give up")
    given = solution.values[columns].tolist()
    if fit(candidates.room(given), [requirement], deadline) is None:
        raise SolverFault("what the solver gives up does not make room")
    kept = _pruned(candidates, requirement, items, list(given), deadline)
    price = sum(count * price for count, price in zip(kept, candidates.prices, strict=True))
    return GivenUp(
        requirement.option, requirement.most, tuple(kept), price, solution.status == "optimal" and kept == given
    )


def _pruned(
    candidates: RemovableJobs | FreeableGpus,
    requirement: Requirement,
    items: Items,
    given: list[int],
    deadline: Deadline,
) -> list[int]:
    """Keep what need not be given up; a proven optimum has no such item."""
    for item in range(len(given)):
        while given[item] and not any(given[i] and j == item for i, j in items.later):
            given[item] -= 1
            if fit(candidates.room(given), [requirement], deadline) is None:
                given[item] += 1
                break
    return given


def cheapest_removal(
    q: Question, state: State, jobs: Sequence[int], prices: Sequence[int], last_first: Sequence[tuple[int, int]] = ()
) -> tuple[RemovableJobs, GivenUp] | None:
    """Return which of ``jobs`` would leave at the least price for ``q``'s job to fit; of equal prices the fewest."""
    scale = len(prices) + 1  # of equal sums the smaller set is the cheaper, as long as prices do not get too large
    ties_broken = [price * scale + 1 for price in prices] if sum(prices) * scale < MAX_PRICE else list(prices)
    candidates = RemovableJobs(q.case, state, jobs, ties_broken, last_first)
    given_up = least_given_up(candidates, q.requirements, q.solve, q.deadline)
    return None if given_up is None else (candidates, given_up)


def rivals(q: Question, candidates: RemovableJobs, given_up: GivenUp, values: Mapping[int, int]) -> tuple[Rival, ...]:
    """Name the jobs that would leave, with what they are worth."""
    ids = q.case.problem.job_ids
    return tuple(
        Rival(job=ids[job], value=values[job], running=job in q.case.running) for job in candidates.leaving(given_up)
    )
