"""``explain_all``: why the jobs of a whole queue wait, by reason, and which single change would free most of them."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from dataclasses import dataclass

from placeopt.arguments import checked
from placeopt.deadline import Deadline
from placeopt.edits import apply, true_of, unread_in
from placeopt.errors import BadInput, OutOfTime
from placeopt.explain.changes import single_changes
from placeopt.explain.kinds import JobKind, job_kinds
from placeopt.explain.question import Question, Tools, check_plan, compile_round, freest, tools, with_policy
from placeopt.explain.queue_explanation import Freed, QueueExplanation, WaitingReason
from placeopt.explain.records import SingleChange
from placeopt.explain.rules import conflict, fits
from placeopt.explain.waiting import why
from placeopt.explain.words import does_not_fit
from placeopt.heuristics import Candidates, place, score_named
from placeopt.model import Instance, Plan
from placeopt.model.plan import UnplacedReason

LEAST_S = 0.001
EXAMPLES = 5
"""Jobs named for each reason."""
Tell = Callable[[str], None]
Rules = tuple[tuple[str, str], ...] | None
"""Constraints that cannot hold together, by group and name; None: the job fits."""
Why = tuple[UnplacedReason, Rules]


@dataclass
class _Kind(JobKind):
    """Jobs alike, with the reason of the first."""

    why: Why | None = None
    is_joint: bool = False


@checked
def explain_all(
    instance: Instance,
    plan: Plan,
    *,
    time_limit_s: float = 30.0,
    cancel: threading.Event | None = None,
    on_progress: Tell | None = None,
) -> QueueExplanation:
    """
    Group the waiting jobs of a plan by reason, and count what each single change of the cluster would let start.

    Parameters
    ----------
    instance, plan
        The round, and a valid plan of it; the plan's policy counts.
    time_limit_s
        Wall-clock seconds. Jobs alike are answered together, those of most jobs first; jobs without an answer by then
        have the plan's own reason, changes that were not tried are left out, and ``proven`` is false.
    cancel
        Set it from another thread to end as if the time were over.
    on_progress
        Called with a sentence about the current activity.

    Returns
    -------
    QueueExplanation
        Reasons and constraints are proven, job by job, beside the plan; so is the number of jobs that a change lets in
        each by itself. How many of them start together is counted by greedy placing, the small ones first: at least so
        many do. Minimal utilities (``policy.postpone``) are set aside.

    Raises
    ------
    BadInput
        If the plan is not of this round or breaks its rules.
    """
    if not 0 < time_limit_s < math.inf:
        raise BadInput(f"time_limit_s: {time_limit_s}, expected seconds above 0")
    deadline, tell = Deadline(time_limit_s, cancel), on_progress or (lambda _: None)
    tell("checking the plan")
    check_plan(instance, plan)
    kinds = [_Kind(**vars(kind)) for kind in job_kinds(instance, plan)]
    with tools("process", deadline) as by:
        _find_reasons(instance, plan, kinds, by, tell)
        told = all(kind.why is not None for kind in kinds)
        freed, tried = _freed_by(instance, plan, kinds, by, tell)
    found = QueueExplanation(
        waiting=sum(len(kind.jobs) for kind in kinds),
        kinds=len(kinds),
        reasons=_grouped(kinds),
        changes=freed,
        proven=told and tried,
        seconds=round(deadline.spent_s, 4),
    )

    def again() -> QueueExplanation:
        left_s = max(LEAST_S, deadline.left_s)
        return explain_all(*freest(unread, instance, plan), time_limit_s=left_s, cancel=cancel)

    unread = unread_in(instance, waiting=False, moved=())
    return true_of(found, unread, again, _said)


def _said(found: QueueExplanation) -> object:
    """Return what an explanation says, in any order and without examples."""
    reasons = {(one.reason, one.constraints): one.jobs for one in found.reasons}
    return reasons, {one.change: one.jobs_alone for one in found.changes}


def _find_reasons(instance: Instance, plan: Plan, kinds: list[_Kind], by: Tools, tell: Tell) -> None:
    round_ = compile_round(instance, plan, [kind.first.id for kind in kinds])
    for number, kind in enumerate(kinds):
        tell(f"why jobs wait: kind {number + 1:,} of {len(kinds):,}")
        q = Question(instance, plan, kind.first, by, round_)
        try:
            if fits(q, "plan"):
                kind.why = (kind.planned.most_common(1)[0][0], None)
            else:
                reason, beside = why(q)
                kind.why = (reason, tuple((one.group, one.name) for one in conflict(q, beside)))
            kind.is_joint = q.is_joint
        except OutOfTime:
            return


def _grouped(kinds: list[_Kind]) -> tuple[WaitingReason, ...]:
    """Return the reasons, those of most jobs first; jobs without an answer have the plan's."""
    members: dict[tuple[Why, bool], list[_Kind]] = {}
    for kind in kinds:
        if kind.why is not None:
            members.setdefault((kind.why, True), []).append(kind)
        else:
            members.setdefault(((kind.planned.most_common(1)[0][0], None), False), []).append(kind)
    reasons = [
        WaitingReason(
            reason=reason,
            constraints=tuple(name for _, name in rules or ()),
            detail=_detail(reason, rules) if told else "as the plan says; not verified",
            jobs=sum(len(kind.jobs) for kind in some),
            gpu_milli=sum(len(kind.jobs) * kind.gpu_milli for kind in some),
            examples=tuple(name for kind in some for name in kind.jobs)[:EXAMPLES],
        )
        for ((reason, rules), told), some in members.items()
    ]
    return tuple(sorted(reasons, key=lambda one: (-one.jobs, one.reason, one.constraints)))


def _detail(reason: UnplacedReason, rules: Rules) -> str:
    if rules is None:
        return "fits beside the plan; the plan leaves it out"
    return does_not_fit(reason, [name for _, name in rules])


def _freed_by(
    instance: Instance, plan: Plan, kinds: list[_Kind], by: Tools, tell: Tell
) -> tuple[tuple[Freed, ...], bool]:
    """Return what the changes would free, most first, and whether every change was tried."""
    changes = list(single_changes(instance, plan))
    freed: list[Freed] = []
    for number, change in enumerate(changes):
        tell(f"what would help: change {number + 1:,} of {len(changes):,}, {change.change}")
        touched = [kind for kind in kinds if _may_help(change, kind)]
        try:
            alone, together, gpu_milli = _counted(change, instance, plan, touched, by)
        except OutOfTime:
            return _ranked(freed), False
        if alone:
            freed.append(
                Freed(
                    change=change.change,
                    steps=change.steps,
                    jobs_alone=alone,
                    jobs_together=together,
                    gpu_milli=gpu_milli,
                )
            )
    return _ranked(freed), True


def _may_help(change: SingleChange, kind: _Kind) -> bool:
    """Return whether a change may let jobs start: a conflict that does not name what is changed stands by itself."""
    if kind.why is None or kind.why[1] is None:
        return False
    return change.group is None or kind.is_joint or change.group in {group for group, _ in kind.why[1]}


def _ranked(freed: list[Freed]) -> tuple[Freed, ...]:
    return tuple(sorted(freed, key=lambda one: (-one.jobs_together, -one.jobs_alone, one.change)))


def _counted(
    change: SingleChange, instance: Instance, plan: Plan, touched: list[_Kind], by: Tools
) -> tuple[int, int, int]:
    """Return how many jobs fit alone after a change, how many start together at least, and their GPU-milli."""
    if not touched:
        return 0, 0, 0
    edited = apply(instance.model_copy(update={"policy": plan.policy.values}), change.steps)
    free = edited.policy.postpone.model_copy(update={"rule": "none"})
    values = edited.policy.model_copy(update={"postpone": free})
    judged = with_policy(plan, values)
    round_ = compile_round(edited, judged, [kind.first.id for kind in touched])
    fitting = [kind for kind in touched if fits(Question(edited, judged, kind.first, by, round_), "plan")]
    candidates = Candidates(round_.beside(round_.placed), score_named("first_fit", round_.problem))
    number = {name: job for job, name in enumerate(round_.problem.job_ids)}
    together = gpu_milli = 0
    for kind in sorted(fitting, key=lambda kind: (kind.is_joint, kind.gpu_milli)):
        if not kind.is_joint:
            count = _started(candidates, number[kind.first.id], len(kind.jobs), by.deadline)
        else:  # no greedy count of jobs that depend on others: one starts at least
            count = int(not together)
        together, gpu_milli = together + count, gpu_milli + count * kind.gpu_milli
    return sum(len(kind.jobs) for kind in fitting), together, gpu_milli


def _started(candidates: Candidates, job: int, most: int, deadline: Deadline) -> int:
    """Return how many copies of a job greedy places; they stay in the state."""
    state = candidates.state
    for count in range(most):
        placement = place(candidates, job)
        if placement is None or deadline.is_set():
            return count
        state.take(job, placement)
        for node in dict.fromkeys(placement.nodes):
            if placement.gpus:
                state.node_jobs[node][job] = None
            candidates.changed(node)
    return most
