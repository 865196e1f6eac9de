"""Why a waiting job waits: the reason, in a sentence, the conflict behind it, and the jobs that hold its room."""

from __future__ import annotations

from typing import Any

from placeopt.errors import OutOfTime
from placeopt.explain.explanation import Explanation
from placeopt.explain.fixed_round import cheapest_removal, judged, reach_beside, without, worths
from placeopt.explain.offers import REMEDIES, place_of, remedies
from placeopt.explain.question import Beside, Question
from placeopt.explain.records import Outvoted, Remedies
from placeopt.explain.rules import conflict, fits
from placeopt.explain.words import does_not_fit, listed
from placeopt.feasibility.fit import best_fit
from placeopt.feasibility.free_capacity import free_capacity_of
from placeopt.feasibility.minimal_utility import Reach
from placeopt.model.plan import UnplacedReason

SHOWN = 4
"""Jobs named in a sentence."""
FITS = dict.fromkeys(REMEDIES, "it fits as it is")


def explain_waiting(q: Question) -> Explanation:
    """Explain why ``q.job`` waits."""
    # The reasons are those of a plan, tried in the same order: the job fits beside the plan; its queue is full; it fits
    # beside the running jobs that must stay; it does not. Without time for that, the plan's own reason is returned.
    try:
        found = _although_it_fits(q) if fits(q, "plan") else _does_not_fit(q)
    except OutOfTime:
        waits = "waits" if q.planned is None else q.planned.detail
        found = {
            "reason": None if q.planned is None else q.planned.reason,
            "detail": f"{waits} (as the plan says; there was no time to verify it)",
            "remedies": Remedies(none=dict.fromkeys(REMEDIES, "not answered: no time left")),
            "proven": False,
        }
    plan_reason = None if q.planned is None else q.planned.reason
    common = {"job": q.job.id, "status": "waiting", "plan_reason": plan_reason, "seconds": q.seconds()}
    return Explanation.model_validate({**common, "proven": not q.open, **found})


def why(q: Question) -> tuple[UnplacedReason, Beside]:
    """Return the reason of a job that does not fit beside the plan, and beside what it does not."""
    if not q.is_joint and _queue_is_full(q):
        return "policy", "plan"
    return ("outvoted", "plan") if fits(q, "running") else ("conflict", "running")


def _queue_is_full(q: Question) -> bool:
    """Whether utility or queue forbids each option, wherever it would run."""
    room = q.room("plan")
    return all(
        not requirement.useful or room.queue_takes(requirement) < requirement.fewest for requirement in q.requirements
    )


def _does_not_fit(q: Question) -> dict[str, Any]:
    reason, beside = why(q)
    held = q.within("conflict", lambda: conflict(q, beside)) or ()
    could = reason != "conflict" and not q.in_part and (reason == "outvoted" or fits(q, "running"))
    outvoted = q.within("outvoted_by", lambda: _outvoted(q)) if could else None
    offered = remedies(q, beside, held)
    detail = does_not_fit(reason, [constraint.name for constraint in held])
    if outvoted is not None and reason == "outvoted":
        detail = _vote(outvoted)
    lookahead = q.plan.policy.values.postpone.rule == "lookahead"
    if lookahead and q.planned is not None and q.planned.reason == "postponed":
        reason, detail = "postponed", f"{q.planned.detail}; beside the plan: {detail}"
    before = "runs in part; the rest " if q.in_part else ""
    if q.number in q.round.running:
        before = "ran and was preempted; "
    return {
        "reason": reason,
        "detail": before + detail,
        "beside": beside,
        "conflict": held,
        "outvoted_by": outvoted,
        "remedies": offered,
        "proven": not q.open and all(answer is None or answer.proven for answer in (outvoted, offered.preempt)),
    }


def _although_it_fits(q: Question) -> dict[str, Any]:
    """Say why a job waits for which the plan leaves room."""
    limit = "" if q.plan.limit == "none" else f" (stopped by {q.plan.limit})"
    if q.is_joint:
        reason, detail = "not_reached", f"fits beside the plan; the search did not get to it{limit}"
        if q.planned is not None and q.planned.reason == "outvoted":  # its worth is proven not to raise the value
            reason, detail = q.planned.reason, q.planned.detail
        return {"reason": reason, "detail": detail, "remedies": Remedies(none=FITS)}
    best = best_fit(q.room("plan"), q.requirements, q.deadline)
    if best is None:
        raise OutOfTime("room was found for it before")
    worth = best.worth
    reached = q.within("utility", lambda: reach_beside(q, q.round.states["plan"])) if judged(q) else None
    if reached is not None:
        if not reached.reached:
            return _below_its_minimum(q, reached)
        worth = reached.worth
    nodes = [q.problem.node_ids[node] for node in best.nodes]
    more = f" and {len(nodes) - 1} more" if len(nodes) > 1 else ""
    where = f"fits on node {nodes[0]!r}{more} beside the plan"
    planned = q.planned
    if not worth:
        reason, detail = "outvoted", f"{where}, but is worth nothing, so placing it would not raise the value"
    elif planned is not None and (
        planned.reason == "policy" or (planned.reason == "postponed" and not judged(q)) or q.number in q.round.running
    ):
        reason, detail = planned.reason, planned.detail
    else:
        open_ = "; whether it has its minimal utility there was not determined in time" if "utility" in q.open else ""
        reason, detail = "not_reached", f"{where}{open_}; the search did not get to it{limit}"
    return {"reason": reason, "detail": detail, "remedies": Remedies(none=FITS)}


def _below_its_minimum(q: Question, best: Reach) -> dict[str, Any]:
    """It has room, but nowhere at its minimal utility: where it is closest to it."""
    place = place_of(q, best)
    nodes = place.nodes[0] if len(place.nodes) == 1 else f"{place.nodes[0]} and {len(place.nodes) - 1} more"
    where = f"has room beside the plan, at a utility of {place.utility}/1000 at best, on {nodes}"
    if place.utility < place.asks:
        why_ = f"it asks for {place.asks}/1000"
    else:
        why_ = f"{listed(place.falls_short[:SHOWN])} would fall below the minimum there"
    offered = remedies(q, "plan")
    return {
        "reason": "postponed",
        "detail": f"{where}; {why_}",
        "best_place": place,
        "remedies": offered,
        "proven": not q.open,
    }


def _outvoted(q: Question) -> Outvoted | None:
    """The jobs of the plan that hold its room: those that started, and only if need be running ones too."""
    ran = {held.job for held in q.instance.running}
    stay = {held.job for held in q.held("running")}
    started = worths(q, (one for one in q.plan.placements if one.job not in ran))
    changeable = worths(q, (one for one in q.plan.placements if one.job not in stay))
    for values in (started, changeable):
        removal = cheapest_removal(q, q.plan.placements, values)
        if removal is not None:
            break
    else:
        return None
    worth = removal.worth
    if not q.is_joint:
        best = best_fit(free_capacity_of(without(q, removal.jobs), q.job), q.requirements, q.deadline)
        worth = 0 if best is None else best.worth
    gone = removal.rivals(q, values)
    return Outvoted(
        jobs=gone,
        value=sum(rival.value for rival in gone),
        job_value=worth,
        proven=removal.proven,
    )


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
