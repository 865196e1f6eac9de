"""Why a waiting job waits: the reason, in a sentence, the conflict behind it, and the jobs that hold its room."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from placeopt.errors import OutOfTime
from placeopt.explain.fixed_round import cheapest_removal, judged, reach_beside, without, worths
from placeopt.explain.offers import REMEDIES, place_of, remedies
from placeopt.explain.question import Question
from placeopt.explain.records import Constraint, Explanation, Outvoted, Remedies
from placeopt.explain.remedies import conflict
from placeopt.explain.words import constraints, listed
from placeopt.feasibility.fit import Fit, best_fit, fit
from placeopt.feasibility.free_capacity import FreeCapacity, free_capacity_of
from placeopt.feasibility.minimal_utility import Reach
from placeopt.feasibility.requirement import Requirement
from placeopt.model.plan import UnplacedReason

SHOWN = 4
"""Jobs named in a sentence."""


def explain_waiting(q: Question) -> Explanation:
    """Explain why ``q.case.job`` waits."""
    # The reasons are those of a plan, tried in the same order: the job fits beside the plan; its queue is full; it fits
    # beside the running jobs that must stay; it does not. Without time for that, the plan's own reason is returned.
    try:
        return _explain(q)
    except OutOfTime:
        waits = "waits" if q.planned is None else q.planned.detail
        return _explanation(
            q,
            reason=None if q.planned is None else q.planned.reason,
            detail=f"{waits} (as the plan says; there was no time to verify it)",
            remedies=Remedies(none=dict.fromkeys(REMEDIES, "not answered: no time left")),
            proven=False,
        )


def _explanation(q: Question, **fields: Any) -> Explanation:
    """Return the explanation with what every waiting job's has."""
    plan_reason = None if q.planned is None else q.planned.reason
    common = {"job": q.case.job.id, "status": "waiting", "plan_reason": plan_reason, "seconds": q.seconds()}
    return Explanation(**{"proven": not q.open, **common, **fields})


def _explain(q: Question) -> Explanation:
    job, after = q.case.job, q.case.beside_plan()
    room = free_capacity_of(after, job)
    best = best_fit(room, q.requirements, q.deadline)
    if best is not None:
        worth = best.worth
        reached = q.within("utility", lambda: reach_beside(q, after)) if judged(q) else None
        if reached is not None:
            if not reached.reached:
                return _below_its_minimum(q, room, reached)
            worth = reached.worth
        reason, detail = _although_it_fits(q, best, worth)
        none = dict.fromkeys(REMEDIES, "it fits as it is")
        return _explanation(q, reason=reason, detail=detail, remedies=Remedies(none=none))
    staying = q.case.beside_staying()
    room_beside_staying = free_capacity_of(staying, job)
    could = fit(room_beside_staying, q.requirements, q.deadline) is not None
    reason = "policy" if queue_is_full(room, q.requirements) else "outvoted" if could else "conflict"
    room = room_beside_staying if reason == "conflict" else room
    groups = q.within("conflict", lambda: conflict(room, q.requirements, q.deadline)) or ()
    held = constraints(groups, q.requirements, job)
    outvoted = q.within("outvoted_by", lambda: _outvoted(q)) if could else None
    offered = remedies(q, room, q.staying if reason == "conflict" else q.plan.placements)
    solved = (outvoted, offered.preempt)
    beside: Literal["running", "plan"] = "running" if reason == "conflict" else "plan"
    detail = _detail(reason, held, outvoted)
    lookahead = q.plan.policy.values.postpone.rule == "lookahead"
    if lookahead and q.planned is not None and q.planned.reason == "postponed":
        reason, detail = "postponed", f"{q.planned.detail}; beside the plan: {detail}"
    return _explanation(
        q,
        reason=reason,
        detail=("ran and was preempted; " if q.case.number in q.case.running else "") + detail,
        beside=beside,
        conflict=held,
        outvoted_by=outvoted,
        remedies=offered,
        proven=not q.open and all(answer is None or answer.proven for answer in solved),
    )


def _below_its_minimum(q: Question, room: FreeCapacity, best: Reach) -> Explanation:
    """It has room, but nowhere at its minimal utility: where it is closest to it."""
    place = place_of(q, best)
    nodes = place.nodes[0] if len(place.nodes) == 1 else f"{place.nodes[0]} and {len(place.nodes) - 1} more"
    where = f"has room beside the plan, at a utility of {place.utility}/1000 at best, on {nodes}"
    if place.utility < place.asks:
        why = f"it asks for {place.asks}/1000"
    else:
        why = f"{listed(place.falls_short[:SHOWN])} would fall below the minimum there"
    offered = remedies(q, room, q.plan.placements)
    return _explanation(
        q, reason="postponed", detail=f"{where}; {why}", best_place=place, remedies=offered, proven=not q.open
    )


def _although_it_fits(q: Question, best: Fit, worth: int) -> tuple[UnplacedReason, str]:
    nodes = [q.case.problem.node_ids[node] for node in best.nodes]
    more = f" and {len(nodes) - 1} more" if len(nodes) > 1 else ""
    where = f"fits on node {nodes[0]!r}{more} beside the plan"
    if not worth:
        return "outvoted", f"{where}, but is worth nothing, so placing it would not raise the value"
    planned = q.planned
    if planned is not None and (
        planned.reason == "policy"
        or (planned.reason == "postponed" and not judged(q))
        or q.case.number in q.case.running
    ):
        return planned.reason, planned.detail
    if "utility" in q.open:
        where += "; whether it has its minimal utility there was not determined in time"
    limit = "" if q.plan.limit == "none" else f" (stopped by {q.plan.limit})"
    return "not_reached", f"{where}; the search did not get to it{limit}"


def queue_is_full(room: FreeCapacity, requirements: Sequence[Requirement]) -> bool:
    """Whether utility or queue forbids each option, wherever it would run."""
    return all(
        not requirement.useful or room.queue_takes(requirement) < requirement.fewest for requirement in requirements
    )


def _outvoted(q: Question) -> Outvoted | None:
    """The jobs of the plan that hold its room: those that started, and only if need be running ones too."""
    ran = {held.job for held in q.instance.running}
    stay = {held.job for held in q.staying}
    started = worths(q, (one for one in q.plan.placements if one.job not in ran))
    changeable = worths(q, (one for one in q.plan.placements if one.job not in stay))
    for values in (started, changeable):
        removal = cheapest_removal(q, q.plan.placements, values)
        if removal is not None:
            break
    else:
        return None
    state = without(q, removal.jobs)
    best = best_fit(free_capacity_of(state, q.case.job), q.requirements, q.deadline)
    gone = removal.rivals(q, values)
    return Outvoted(
        jobs=gone,
        value=sum(rival.value for rival in gone),
        job_value=0 if best is None else best.worth,
        proven=removal.proven,
    )


def _detail(reason: UnplacedReason, held: Sequence[Constraint], outvoted: Outvoted | None) -> str:
    beside = "the running jobs that must stay" if reason == "conflict" else "the plan"
    if outvoted is not None and reason == "outvoted":
        return _vote(outvoted)
    if not held:
        return f"does not fit beside {beside}"
    if len(held) == 1:
        return f"does not fit beside {beside}: by {held[0].name} alone"
    return f"does not fit beside {beside}: {listed([constraint.name for constraint in held])} cannot hold together"


def _vote(outvoted: Outvoted) -> str:
    mine, theirs = outvoted.job_value, outvoted.value
    jobs = [rival.job for rival in outvoted.jobs]
    who = listed(jobs if len(jobs) <= SHOWN + 1 else [*jobs[:SHOWN], f"{len(jobs) - SHOWN} more"])
    verb = "holds the room it needs and is worth" if len(jobs) == 1 else "hold the room it needs and are worth"
    together = "" if len(jobs) == 1 else " together"
    if theirs > mine:
        verdict = f"more than its {mine:,}"
    elif theirs == mine:
        verdict = "as much as it"
    else:
        better = "" if any(rival.running for rival in outvoted.jobs) else ": the plan can be improved"
        verdict = f"less than its {mine:,}{better}"
    return f"{who} {verb} {theirs:,}{together}, {verdict}"
