"""Rounds of one job while all others stay: which of them would have to stop."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from placeopt.errors import OutOfTime
from placeopt.explain.judged_removal import PricedRemovals, judged_removal
from placeopt.explain.question import Question, has_groups
from placeopt.explain.records import Rival
from placeopt.feasibility.minimal_utility import Reach, reach, utility_binds, without_minima
from placeopt.model import Instance, Placement, Policy, Running
from placeopt.problem import Move, State
from placeopt.problem.running import placed_in
from placeopt.solving.held_room import room_round
from placeopt.solving.params import SolveOptions

MAX_PRICE = 2**50


@dataclass(frozen=True)
class Removal:
    """Jobs without which the job fits, in which of its options, and whether a cheaper set is proven not to do."""

    jobs: tuple[str, ...]
    option: str
    proven: bool
    worth: int
    """Of the job where it is placed then."""

    def rivals(self, q: Question, prices: Mapping[str, int]) -> tuple[Rival, ...]:
        """Name the jobs, with what they are worth."""
        running = {held.job for held in q.instance.running}
        return tuple(Rival(job=job, value=prices[job], running=job in running) for job in self.jobs)


def fixed_round(q: Question, held: Iterable[Running | Placement], policy: Policy) -> Instance:
    """Return the round of ``q``'s job beside jobs that run where they are held, to which no minimal utility applies."""
    running = tuple(
        Running(job=one.job, option=one.option, assignments=one.assignments) for one in held if one.job != q.job.id
    )
    there = {one.job for one in running}
    jobs = (one.model_copy(update={"utility_min_thousandths": None}) for one in q.instance.jobs if one.id in there)
    new = {"jobs": (q.job, *jobs), "running": running, "policy": policy, "reading": ()}
    return q.instance.model_copy(update=new)


def cheapest_removal(
    q: Question, held: Iterable[Running | Placement], prices: Mapping[str, int], *, last_first: bool = False
) -> Removal | None:
    """
    Return which jobs would stop at the least price for ``q``'s job to fit; of equal prices the fewest.

    ``last_first``: a job may only stop if those of its queue do that arrived later. None if it does not fit without all
    of them, either. Where minimal utilities count, it has to reach its own and leave others theirs. Raises
    ``OutOfTime`` where that stays open.
    """
    held, policy = list(held), q.plan.policy.values
    scale = len(prices) + 1  # of equal sums the smaller set is the cheaper, as long as prices do not get too large
    ties = sum(prices.values()) * scale < MAX_PRICE
    worth = {job: price * scale + 1 if ties else price for job, price in prices.items()}
    postpone = policy.postpone if judged(q) else None
    round_ = room_round(fixed_round(q, held, policy), q.job, worth, postpone=postpone, last_first=last_first)
    q.deadline.check("what others could give up was looked for")
    return _solved(q, round_, worth) if postpone is None else _judged(q, round_, held, prices)


def _solved(q: Question, round_: Instance, worth: Mapping[str, int]) -> Removal | None:
    """Solve a round in which the job is worth more than all others together, and each may stop at its price."""
    limits: SolveOptions = {"time_limit_s": q.deadline.left_s} if math.isfinite(q.deadline.left_s) else {}
    plan = q.by.solver.solve(round_, cancel=q.deadline, **limits)
    place, (value, *_) = plan.placement_of(q.job.id), plan.levels
    if place is not None:
        found = placed_in(q.problem, [place], q.problem.running_records)
        return Removal(
            tuple(one.job for one in plan.preempted),
            place.option,
            value.objective == value.bound,
            sum(int(q.problem.options.value[at.option]) for at in found.values()),
        )
    if value.bound is None or value.bound > sum(worth.values()):
        raise OutOfTime("stopped while looking for what others could give up")
    return None


def _judged(q: Question, round_: Instance, held: Iterable[Running | Placement], jobs: Iterable[str]) -> Removal | None:
    """Return the cheapest removal of that round, of ``jobs``, after which the minima of ``q``'s round are kept."""
    removals = PricedRemovals(round_, q.job.id, q.by.solve, q.deadline)
    free = without_minima(q.round.beside(placed_in(q.problem, held, q.problem.running_records)))
    found = judged_removal(removals, free, q.number, q.deadline)
    if found is None:
        return None
    option = q.problem.options.name[found.place.placement.option]
    return Removal(tuple(job for job in jobs if job in found.gone), option, found.proven, found.place.worth)


def worths(q: Question, held: Iterable[Running | Placement]) -> dict[str, int]:
    """Return what jobs are worth as they are placed; those with groups, which no round stops, are left out."""
    jobs = {job.id: job for job in q.instance.jobs}
    options = ((one, jobs[one.job].option(one.option)) for one in held)
    return {
        one.job: option.worth(sum(len(part.workers) for part in one.assignments))
        for one, option in options
        if not has_groups(jobs[one.job])
    }


def judged(q: Question) -> bool:
    """Return whether minimal utilities, its own or those of jobs that start, matter to the job."""
    return not q.is_joint and utility_binds(q.problem, q.number)


def reach_beside(q: Question, state: State) -> Reach | None:
    """Return the best place by minimal utilities beside ``state``."""
    return reach(without_minima(state), q.number, q.deadline)


def without(q: Question, gone: Iterable[str]) -> State:
    """Return the state beside the plan without some jobs."""
    state, number = q.round.beside(q.round.placed), {name: j for j, name in enumerate(q.problem.job_ids)}
    for name in gone:
        state.apply(Move(number[name], None))
    return state
