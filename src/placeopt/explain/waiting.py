"""Why a waiting job waits: the reason, in a sentence, the conflict behind it, and the jobs that hold its room."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from placeopt.errors import OutOfTime
from placeopt.explain.offers import REMEDIES, judged, place_of, reach_beside, reach_without, remedies, to_reach
from placeopt.explain.question import Question
from placeopt.explain.records import Constraint, Explanation, Outvoted, Remedies
from placeopt.explain.remedies import conflict
from placeopt.explain.removal import cheapest_removal, rivals
from placeopt.explain.words import constraints, listed
from placeopt.feasibility.fit import Fit, best_fit, fit
from placeopt.feasibility.free_capacity import FreeCapacity, free_capacity_of
from placeopt.feasibility.minimal_utility import Reach
from placeopt.feasibility.requirement import Requirement
from placeopt.model.plan import Unplaced, UnplacedReason
from placeopt.problem import State

SHOWN = 4
"""Jobs named in a sentence."""


def explain_waiting(q: Question, seconds: Callable[[], float]) -> Explanation:
    """
    Explain why ``q.case.job`` waits.

    The reasons are those of a plan, tried in the same order: the job fits beside the plan; its queue is full; it fits
    beside the running jobs that must stay; it does not. Without time for that, the plan's own word is passed on.
    """
    job = q.case.job.id
    said = next((unplaced for unplaced in q.plan.unplaced if unplaced.job == job), None)
    try:
        return _explain(q, said, seconds)
    except OutOfTime:
        return Explanation(
            job=job,
            status="waiting",
            reason=None if said is None else said.reason,
            detail=f"{'waits' if said is None else said.detail} (as the plan says; there was no time to verify it)",
            plan_reason=None if said is None else said.reason,
            remedies=Remedies(none=dict.fromkeys(REMEDIES, "not answered: no time left")),
            proven=False,
            seconds=seconds(),
        )


def _explain(q: Question, said: Unplaced | None, seconds: Callable[[], float]) -> Explanation:
    job, plan_reason = q.case.job, None if said is None else said.reason
    after = q.case.beside_plan()
    room = free_capacity_of(after, job)
    found = best_fit(room, q.requirements, q.deadline)
    reached = None
    if found is not None and judged(q):
        reached = q.within("utility", lambda: reach_beside(q, after))
        if reached is not None and not reached.reached:
            return _below_its_minimum(q, after, reached, said, seconds)
    if found is not None:
        worth = found.worth if reached is None else reached.worth
        reason, detail = _although_it_fits(q, found, worth, said)
        return Explanation(
            job=job.id,
            status="waiting",
            reason=reason,
            detail=detail,
            plan_reason=plan_reason,
            remedies=Remedies(none=dict.fromkeys(REMEDIES, "it fits as it is")),
            proven=not q.open,
            seconds=seconds(),
        )
    staying = q.case.beside_staying()
    room_beside_staying = free_capacity_of(staying, job)
    could = fit(room_beside_staying, q.requirements, q.deadline) is not None
    reason = "policy" if _queue_is_full(room, q.requirements) else "outvoted" if could else "conflict"
    state, room = (staying, room_beside_staying) if reason == "conflict" else (after, room)
    groups = q.within("conflict", lambda: conflict(room, q.requirements, q.deadline)) or ()
    held = constraints(groups, q.requirements, job)
    outvoted = q.within("outvoted_by", lambda: _outvoted(q, after)) if could else None
    offered = remedies(q, state, room)
    solved = (outvoted, offered.gpus_to_free, offered.preempt)
    detail = _detail(reason, held, outvoted)
    if said is not None and said.reason == "postponed" and q.plan.policy.values.postpone.rule == "lookahead":
        reason, detail = "postponed", f"{said.detail}; beside the plan: {detail}"
    return Explanation(
        job=job.id,
        status="waiting",
        reason=reason,
        detail=("ran and was preempted; " if q.case.number in q.case.running else "") + detail,
        plan_reason=plan_reason,
        beside="running" if reason == "conflict" else "plan",
        conflict=held,
        outvoted_by=outvoted,
        remedies=offered,
        proven=not q.open and all(one is None or one.proven for one in solved),
        seconds=seconds(),
    )


def _below_its_minimum(
    q: Question, after: State, found: Reach, said: Unplaced | None, seconds: Callable[[], float]
) -> Explanation:
    """It has room, but nowhere at its minimal utility: where it comes closest, and what would have to be freed."""
    place = place_of(q, found)
    nodes = place.nodes[0] if len(place.nodes) == 1 else f"{place.nodes[0]} and {len(place.nodes) - 1} more"
    where = f"has room beside the plan, at a utility of {place.utility}/1000 at best, on {nodes}"
    if place.utility < place.asks:
        why = f"it asks for {place.asks}/1000"
    else:
        why = f"{listed(place.falls_short[:SHOWN])} would fall below the minimum there"
    return Explanation(
        job=q.case.job.id,
        status="waiting",
        reason="postponed",
        detail=f"{where}; {why}",
        plan_reason=None if said is None else said.reason,
        best_place=place,
        remedies=to_reach(q, after),
        proven=not q.open,
        seconds=seconds(),
    )


def _although_it_fits(q: Question, found: Fit, worth: int, said: Unplaced | None) -> tuple[UnplacedReason, str]:
    nodes = [q.case.problem.node_ids[node] for node in found.nodes]
    more = f" and {len(nodes) - 1} more" if len(nodes) > 1 else ""
    where = f"fits on node {nodes[0]!r}{more} beside the plan"
    if not worth:
        return "outvoted", f"{where}, but is worth nothing, so placing it would not raise the value"
    if said is not None and (
        said.reason == "policy" or (said.reason == "postponed" and not judged(q)) or q.case.number in q.case.running
    ):
        return said.reason, said.detail
    if "utility" in q.open:
        where += "; whether it has its minimal utility there was not told in time"
    limit = "" if q.plan.limit == "none" else f" (stopped by {q.plan.limit})"
    return "not_reached", f"{where}; the search did not get to it{limit}"


def _queue_is_full(room: FreeCapacity, requirements: Sequence[Requirement]) -> bool:
    """Whether utility or queue forbids each option, wherever it would run."""
    return all(
        not requirement.useful or room.queue_takes(requirement) < requirement.fewest for requirement in requirements
    )


def _outvoted(q: Question, after: State) -> Outvoted | None:
    """The jobs of the plan that hold its room: those that started, and only if need be running ones too."""
    started = [job for job in q.case.placed if job not in q.case.running]
    running = [job for job in q.case.placed if job in q.case.changeable]
    values = {job: int(q.case.problem.options.value[q.case.placed[job].option]) for job in (*started, *running)}
    for candidates in (started, [*started, *running]):
        found = cheapest_removal(q, after, candidates, [values[job] for job in candidates])
        if found is not None:
            break
    else:
        return None
    givers, given = found
    gone = rivals(q, givers, given, values)
    if judged(q):
        without = [job for job, leaves in zip(givers.jobs, given.given, strict=True) if leaves]
        reached = reach_without(q, after, without)
        if reached is None or not reached.reached:
            return None  # they hold its room, but without them it would still be below its minimal utility
    best = best_fit(givers.room(given.given), q.requirements, q.deadline)
    return Outvoted(
        jobs=gone,
        value=sum(rival.value for rival in gone),
        job_value=0 if best is None else best.worth,
        proven=given.proven,
    )


def _detail(reason: UnplacedReason, held: Sequence[Constraint], outvoted: Outvoted | None) -> str:
    beside = "the running jobs that must stay" if reason == "conflict" else "the plan"
    if outvoted is not None and reason == "outvoted":
        return _vote(outvoted)
    if not held:
        return f"does not fit beside {beside}"
    if len(held) == 1:
        return f"does not fit beside {beside}: by {held[0].name} alone"
    return f"does not fit beside {beside}: {listed([one.name for one in held])} cannot hold together"


def _vote(outvoted: Outvoted) -> str:
    mine, theirs = outvoted.job_value, outvoted.value
    jobs = [rival.job for rival in outvoted.jobs]
    who = listed(jobs if len(jobs) <= SHOWN + 1 else [*jobs[:SHOWN], f"{len(jobs) - SHOWN} more"])
    verb = "holds its room and is worth" if len(jobs) == 1 else "hold its room and are worth"
    together = "" if len(jobs) == 1 else " together"
    if theirs > mine:
        verdict = f"more than its {mine:,}"
    elif theirs == mine:
        verdict = "as much as it"
    else:
        better = "" if any(rival.running for rival in outvoted.jobs) else ": the plan can be improved"
        verdict = f"less than its {mine:,}{better}"
    return f"{who} {verb} {theirs:,}{together}, {verdict}"
