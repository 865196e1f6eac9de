"""Jobs that wait: those that fit as it is, and the smallest sets of changes of what runs that let others start."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from placeopt.check import violations
from placeopt.deadline import Deadline
from placeopt.errors import OutOfTime
from placeopt.explain.kinds import JobKind
from placeopt.explain.question import Question, Tools, compile_round
from placeopt.explain.rules import conflict
from placeopt.explain.waiting import why
from placeopt.explain.words import does_not_fit
from placeopt.judge.records import WaitingJobs
from placeopt.judge.rounds import as_of, by_strict_priorities, judged_policy, may_be_changed, round_of, solved
from placeopt.model import Instance, Job, Plan, Running
from placeopt.solving import Solver

NOT_SOLVED = "the time was over before it was solved"
NOT_LAWFUL = "the changes that were found are not for the sake of a higher priority alone, as strict priorities ask"


class LeastChanges:
    """
    The round of one waiting job beside all that runs, in which the fewest changes that let it start are worth most.

    A change costs ``price``, a stop one more: of sets of one size that with the fewest stops comes first. The job is
    worth more than all changes together. ``allowed``: Whether anything may be changed for it.
    """

    def __init__(self, after: Instance, job: Job) -> None:
        self._policy, self._job = after.policy, job
        changeable = {held.job: held for held in after.running if self._may_change(after, held)}
        workers = sum(len(part.workers) for held in changeable.values() for part in held.assignments)
        self.allowed = bool(changeable)
        self.price = len(changeable) + 1
        """More than all stops beyond their price."""
        self.worth = self.price * (len(changeable) + workers) + len(changeable) + 1
        prices = {
            "move_price": self.price,
            "shrink_price_per_worker": self.price,
            "preemption_price": self.price + 1,
        }
        changes = after.policy.changes.model_copy(update=prices)
        fixed = {"movable": False, "shrinkable": False, "preemptible": False}
        runs = {held.job for held in after.running}
        jobs = [_valued(one, 0) for one in after.jobs if one.id in runs]
        running = [held if held.job in changeable else held.model_copy(update=fixed) for held in after.running]
        policy = judged_policy(after.policy, changes)
        self.round = round_of(after, [*jobs, _valued(job, self.worth)], running, policy)

    def _may_change(self, after: Instance, held: Running) -> bool:
        """Return whether a running job may be changed for the job; the engine judges by limits and protection."""
        if not may_be_changed(held):
            return False
        if self._policy.priorities != "strict":
            return True
        priority = {job.id: job.priority for job in after.jobs}
        waited = self._job.may_preempt(after.now_ms, self._policy.changes.wait_min_ms)
        return waited and priority[held.job] < self._job.priority

    def is_lawful(self, plan: Plan) -> bool:
        """Return whether the plan keeps strict priorities, where the cluster has them."""
        if self._policy.priorities != "strict":
            return True
        strict = by_strict_priorities(self.round, self._policy)
        return not violations(strict, as_of(strict, plan))

    def least(self, bound: int) -> int:
        """Return what no set of changes goes below, by a bound on the value of the round."""
        return max(0, -((bound - self.worth) // (self.price + 1)))


def _valued(job: Job, value: int) -> Job:
    return job.model_copy(update={"options": tuple(option.valued(value) for option in job.options)})


def judge_kind(solver: Solver, after: Instance, kind: JobKind, deadline: Deadline) -> WaitingJobs:
    """Return what it takes to start one of some jobs alike, beside what runs ``after`` the judged plan."""
    asked = LeastChanges(after, kind.first)
    plan = solved(solver, asked.round, deadline)
    value, place = plan.levels[0], plan.placement_of(kind.first.id)
    fields: dict[str, Any] = {"jobs": tuple(kind.jobs)}
    if place is None:
        proven = value.bound is not None and value.bound <= 0
        verdict = "never" if proven else "unknown"
        return WaitingJobs(**fields, verdict=verdict, proven=proven, detail="" if proven else NOT_SOLVED)
    proven = value.bound == value.objective
    stops = len(plan.preempted)
    size = (asked.worth - value.objective - stops) // asked.price
    least = size if proven else None if value.bound is None else asked.least(value.bound)
    if not size:
        return WaitingJobs(**fields, verdict="fits", place=place, size=0, least=0, proven=True)
    if not asked.is_lawful(plan):
        return WaitingJobs(**fields, verdict="unknown", least=least, proven=False, detail=NOT_LAWFUL)
    changed = {"moved": plan.moved, "shrunk": plan.shrunk, "stopped": plan.preempted}
    return WaitingJobs(
        **fields, **changed, verdict="changes", place=place, size=size, least=least, proven=proven or least == size
    )


def with_reasons(
    instance: Instance, plan: Plan, judged: list[tuple[JobKind, WaitingJobs]], by: Tools
) -> list[WaitingJobs]:
    """Return the verdicts, with the reason of jobs that fit after no change, by `placeopt.explain`."""
    never = [kind.first.id for kind, found in judged if found.verdict == "never"]
    if not never:
        return [found for _, found in judged]
    round_ = compile_round(instance, plan, never)
    answers = []
    for kind, found in judged:
        if found.verdict == "never":
            found = found.model_copy(update=_reason(Question(instance, plan, kind.first, by, round_)))
        answers.append(found)
    return answers


def _reason(q: Question) -> dict[str, Any]:
    try:
        reason, beside = why(q)
        names = tuple(one.name for one in conflict(q, beside))
    except OutOfTime:
        return {"detail": "proven; there was no time to find the rules behind it"}
    return {"reason": reason, "conflict": names, "detail": does_not_fit(reason, names)}


def judge_waiting(
    solver: Solver, after: Instance, kinds: list[JobKind], deadline: Deadline, tell: Callable[[str], None]
) -> list[tuple[JobKind, WaitingJobs]]:
    """Return the verdicts of kinds of waiting jobs, in their order; each has an equal part of the time that is left."""
    judged = []
    for number, kind in enumerate(kinds):
        tell(f"what lets waiting jobs start: kind {number + 1:,} of {len(kinds):,}")
        share = Deadline(deadline.left_s / (len(kinds) - number), deadline)
        judged.append((kind, judge_kind(solver, after, kind, share)))
    return judged
