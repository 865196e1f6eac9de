"""Jobs that wait: those that fit as it is, and the smallest sets of changes of what runs that let others start."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from placeopt.check import violations
from placeopt.deadline import Deadline
from placeopt.errors import OutOfTime
from placeopt.explain.kinds import JobKind, job_kinds
from placeopt.explain.question import Beside, Question
from placeopt.explain.rules import conflict, fits
from placeopt.explain.words import does_not_fit
from placeopt.judge.records import WaitingJobs
from placeopt.judge.rounds import as_of, by_strict_priorities, judged_policy, may_be_changed, round_of, solved
from placeopt.model import Instance, Job, Plan, Running

NOT_SOLVED = "the time was over before it was solved"
NOT_ALLOWED = "it fits without all running jobs that may be changed, but not within the limits on changes"
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

    def least(self, bound: int | None) -> int:
        """Return what no set of changes goes below, by a bound on the value of the round."""
        if bound is None:
            return 0
        return max(0, -((bound - self.worth) // (self.price + 1)))


def _valued(job: Job, value: int) -> Job:
    return job.model_copy(update={"options": tuple(option.valued(value) for option in job.options)})


def judged_kinds(after: Instance, rest: Plan) -> list[JobKind]:
    """Return the jobs that wait, by what they ask for and, where priorities are strict, by what may change for them."""
    if after.policy.priorities != "strict":
        return job_kinds(after, rest)
    record, wait_min_ms = {job.id: job for job in after.jobs}, after.policy.changes.wait_min_ms
    kinds: dict[tuple[str, int, bool], JobKind] = {}
    for kind in job_kinds(after, rest):
        for job in map(record.__getitem__, kind.jobs):
            key = kind.first.id, job.priority, job.may_preempt(after.now_ms, wait_min_ms)
            kinds.setdefault(key, JobKind(job, gpu_milli=kind.gpu_milli)).jobs.append(job.id)
    return list(kinds.values())


def judge_waiting(
    after: Instance,
    kinds: list[JobKind],
    questions: Mapping[str, Question],
    deadline: Deadline,
    tell: Callable[[str], None],
) -> list[WaitingJobs]:
    """
    Return what it takes to start one job of each kind, beside what runs ``after`` the judged plan.

    ``questions``: The explanation of the first job of each. No kind has more than half of the time that is left.
    """
    judged = []
    for number, kind in enumerate(kinds):
        tell(f"what lets waiting jobs start: kind {number + 1:,} of {len(kinds):,}")
        q = questions[kind.first.id]
        try:
            found = _judged(q, after, Deadline(deadline.left_s / 2, deadline))
        except OutOfTime as error:
            found = _unknown(q, str(error))
        judged.append(found.model_copy(update={"jobs": tuple(kind.jobs)}))
    return judged


def _judged(q: Question, after: Instance, deadline: Deadline) -> WaitingJobs:
    if not fits(q, "running"):
        return _never(q)
    asked = LeastChanges(after, q.job)
    plan = solved(q.by.solver, asked.round, deadline)
    value, place = plan.levels[0], plan.placement_of(q.job.id)
    if place is None:
        never = value.bound is not None and value.bound <= 0
        return _never(q) if never else _unknown(q, NOT_SOLVED)
    size = (asked.worth - value.objective - len(plan.preempted)) // asked.price
    if not size:
        return WaitingJobs(jobs=(q.job.id,), verdict="fits", place=place, size=0, least=0, proven=True)
    least = size if value.bound == value.objective else asked.least(value.bound)
    if not asked.is_lawful(plan):
        return _unknown(q, NOT_LAWFUL).model_copy(update={"least": least})
    return WaitingJobs(
        jobs=(q.job.id,),
        verdict="changes",
        place=place,
        moved=plan.moved,
        shrunk=plan.shrunk,
        stopped=plan.preempted,
        size=size,
        least=least,
        proven=least == size,
    )


def _unknown(q: Question, why_: str) -> WaitingJobs:
    return WaitingJobs(jobs=(q.job.id,), verdict="unknown", detail=why_, proven=False)


def _never(q: Question) -> WaitingJobs:
    """Return that a job starts after no changes, with the rules behind it."""
    answer = WaitingJobs(jobs=(q.job.id,), verdict="never", proven=True)
    try:
        beside: Beside = "plan" if fits(q, "running") else "running"
        names = tuple(one.name for one in conflict(q, beside))
    except OutOfTime:
        return answer.model_copy(update={"detail": "there was no time to find the rules behind it"})
    detail = does_not_fit("conflict" if beside == "running" else "policy", names)
    if beside == "plan":
        detail += f"; {NOT_ALLOWED}"
    return answer.model_copy(update={"conflict": names, "detail": detail})
