"""The cheapest set of jobs, or the fewest GPUs, that others give up so that a job fits; verified both ways."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

from placeopt.errors import OutOfTime, SolverFault
from placeopt.explain.preemption import Items, making_room
from placeopt.explain.removal_candidates import Gpus, Jobs
from placeopt.feasibility.fit import ceiling, fit, sizes
from placeopt.feasibility.free_capacity import FreeCapacity
from placeopt.feasibility.requirement import Requirement
from placeopt.feasibility.worker_distribution import WorkerDistribution
from placeopt.solvers.result import SolveOptions
from placeopt.solving.runners import Solve


@dataclass(frozen=True)
class GivenUp:
    """What is given up, one number an item; in which option the job then fits; whether less is proven not to do."""

    option: str
    workers: int
    given: tuple[int, ...]
    price: int
    proven: bool


def least_given_up(
    givers: Jobs | Gpus, requirements: Sequence[Requirement], solve: Solve, deadline: float
) -> GivenUp | None:
    """
    Return the cheapest that lets one of ``requirements`` in; None if all of it together would not.

    `placeopt.feasibility.fit` verifies that it suffices, and that nothing of it can be kept. That no cheaper set does
    rests on the solver's proof.

    Raises
    ------
    OutOfTime
        If the solver found nothing by the deadline.
    SolverFault
        If what it returned does not make room.
    """
    now = givers.room([0] * givers.count)
    free = givers.room(givers.most)
    best: GivenUp | None = None
    for requirement in requirements:
        per_node = free.workers(requirement)
        items = givers.items(now, requirement)
        for workers in sizes(requirement, ceiling(free, requirement, per_node)):
            if WorkerDistribution(free, requirement, workers, per_node, deadline=deadline).fits:
                found = _least(givers, now, free, requirement.resized(workers), items, solve, deadline)
                if best is None or found.price < best.price:
                    best = replace(found, proven=found.proven and (best is None or best.proven))
                elif not found.proven:
                    best = replace(best, proven=False)
    return best


def _least(
    givers: Jobs | Gpus,
    now: FreeCapacity,
    free: FreeCapacity,
    requirement: Requirement,
    items: Items,
    solve: Solve,
    deadline: float,
) -> GivenUp:
    model, columns = making_room(now, free, requirement, requirement.most, items, deadline)
    left = deadline - time.monotonic()
    if left <= 0:
        raise OutOfTime("no time left to look for what others could give up")
    solution = solve("highs", model, SolveOptions(time_limit_s=left))
    if solution.values is None:
        if solution.limit == "none":
            raise SolverFault(f"no way to make room was found, though there is one: {solution.message}")
        raise OutOfTime("stopped while looking for what others could give up")
    given = solution.values[columns].tolist()
    if fit(givers.room(given), [requirement], deadline) is None:
        raise SolverFault("what the solver gives up does not make room")
    kept = _pruned(givers, requirement, items, list(given), deadline)
    price = sum(count * price for count, price in zip(kept, givers.prices, strict=True))
    return GivenUp(
        requirement.option, requirement.most, tuple(kept), price, solution.status == "optimal" and kept == given
    )


def _pruned(
    givers: Jobs | Gpus, requirement: Requirement, items: Items, given: list[int], deadline: float
) -> list[int]:
    """Keep what need not be given up; with a proven optimum there is no such thing."""
    for item in range(len(given)):
        while given[item] and not any(given[i] and j == item for i, j in items.later):
            given[item] -= 1
            if fit(givers.room(given), [requirement], deadline) is None:
                given[item] += 1
                break
    return given
