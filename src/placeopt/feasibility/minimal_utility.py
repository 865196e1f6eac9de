"""Whether a job reaches its minimal utility: every place of one job tried, beside all else as it stands."""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from placeopt.deadline import FOREVER, Deadline
from placeopt.feasibility.free_capacity import free_capacity_of
from placeopt.feasibility.requirement import requirements_of
from placeopt.problem import Move, Placement, Problem, State
from placeopt.terms.costs.utility import utility
from placeopt.terms.rules import fits
from placeopt.terms.rules.minimal_utility import applies, shortfall


@dataclass(frozen=True)
class Reach:
    """
    The best place by minimal utilities: one that keeps them all, else the one of the highest utility.

    ``hurt``: jobs that start in the round and would fall below their own minimum by it.
    """

    placement: Placement
    utility: int
    hurt: tuple[int, ...]
    reached: bool
    worth: int


def utility_binds(problem: Problem, job: int) -> bool:
    """Return whether minimal utilities, the job's own or those of others, can keep it out."""
    jobs = problem.instance.jobs
    return applies(problem) and any(
        candidate.utility_min_thousandths is not None
        for j, candidate in enumerate(jobs)
        if j == job or j not in problem.running
    )


def without_minima(state: State) -> State:
    """Return a copy of the state in which no job has a minimal utility."""
    problem = state.problem
    postpone = problem.policy.postpone.model_copy(update={"rule": "none"})
    free = replace(problem, policy=problem.policy.model_copy(update={"postpone": postpone}))
    return State(free, state.allocation())


def reach(free: State, job: int, deadline: Deadline = FOREVER, nodes: Container[int] | None = None) -> Reach | None:
    """
    Return the best place of a job that is not placed in ``free`` (``without_minima``); None if there is no room for it.

    ``nodes``: The only ones that it may use; None: all. Exact: all places are tried, until one keeps all minima and is
    worth something. Raises ``OutOfTime`` at the deadline.
    """
    best: Reach | None = None
    least = free.problem.instance.jobs[job].utility_min_thousandths or 0
    running = free.problem.running
    for placement in possible_placements(free, job, nodes):
        deadline.check("places were tried for their utility")
        undo = free.apply(Move(job, placement))
        beside = dict.fromkeys(other for node in placement.nodes for other in free.node_jobs[node] if other != job)
        hurt = tuple(other for other in beside if other not in running and shortfall(free, other))
        utility_there = utility(free, job)
        free.apply(undo)
        worth = int(free.problem.options.value[placement.option])
        candidate = Reach(placement, utility_there, hurt, utility_there >= least and not hurt, worth)
        if best is None or _rank(candidate) > _rank(best):
            best = candidate
        if candidate.reached and candidate.worth:
            break
    return best


def possible_placements(state: State, job: int, among: Container[int] | None = None) -> Iterator[Placement]:
    """Yield every place with room on nodes ``among`` (None: all), each set of GPUs once; alike workers in one order."""
    problem, options = state.problem, state.problem.options
    record = problem.instance.jobs[job]
    room = free_capacity_of(state, record)
    requirements = {
        (requirement.option, requirement.flavor): requirement for requirement in requirements_of(problem, record)
    }
    for option in problem.options_of(job):
        if options.kinds[option] not in requirements:  # only jobs that run on nodes of no flavor have it
            continue
        requirement, workers = requirements[options.kinds[option]], int(options.workers[option])
        most, usable = room.workers(requirement.resized(workers)), np.flatnonzero(room.usable(requirement))
        nodes = [n for n in np.flatnonzero(most).tolist() if among is None or n in among]
        gpus = {n: usable[problem.gpu_node[usable] == n].tolist() if requirement.gpus else [] for n in nodes}
        for dealt in _deals([(n, min(int(most[n]), workers)) for n in nodes], workers):
            for held in _choices([(gpus[n], k * requirement.gpus) for n, k in dealt]):
                placement = Placement(option, tuple(n for n, k in dealt for _ in range(k)), held)
                if fits(state, job, placement):
                    yield placement


def _rank(candidate: Reach) -> tuple[bool, bool, bool, int]:
    return candidate.reached, candidate.reached and candidate.worth > 0, not candidate.hurt, candidate.utility


def _deals(most: Sequence[tuple[int, int]], workers: int) -> Iterator[list[tuple[int, int]]]:
    """Yield all ways to deal workers to nodes, each of which takes at most its number."""
    if not workers:
        yield []
        return
    if sum(room for _, room in most) < workers:
        return
    (node, room), rest = most[0], most[1:]
    for here in range(min(room, workers), -1, -1):
        for others in _deals(rest, workers - here):
            yield [(node, here), *others] if here else others


def _choices(sets: Sequence[tuple[Sequence[int], int]]) -> Iterator[tuple[int, ...]]:
    """Yield all ways to choose the given number from each set."""
    if not sets:
        yield ()
        return
    (of, count), rest = sets[0], sets[1:]
    for first in combinations(of, count):
        for others in _choices(rest):
            yield (*first, *others)
