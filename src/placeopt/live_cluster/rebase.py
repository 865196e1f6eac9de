"""A plan of an earlier revision, carried over to the present one: what still fits goes in, the rest is named."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from placeopt.actions import plan_actions
from placeopt.check import violations
from placeopt.live_cluster.cluster_record import ClusterRecord, running_record
from placeopt.live_cluster.starts_plan import StartsPlan
from placeopt.model import Instance, Placement, Plan
from placeopt.model.base import Id, Record
from placeopt.model.plan import Unplaced
from placeopt.solving.draft import plan_of

FIXED = (False, False, False)
CHANGES = ("moved", "shrunk", "preempted")
"""Fields of a plan that say what it does to running jobs."""


class Refused(Record):
    """A job of a plan for which the plan no longer holds."""

    job: Id
    """Name of the job."""
    why: str
    """What changed, or which limit its place would break now."""


class Committed(Record):
    """What came of a plan: the jobs that it started or changed, and those for which it came too late."""

    committed: tuple[Id, ...] = ()
    """Jobs that were started, moved, shrunk or stopped."""
    refused: tuple[Refused, ...] = ()
    """Jobs that stay as they are, and why."""


def rebased_plan(
    record: ClusterRecord, form: StartsPlan, plan: Plan, snapshot: Callable[[], Instance]
) -> tuple[Plan, tuple[Refused, ...]]:
    """
    Return what of a plan can be carried out now, as a plan of the present revision that is judged, and what cannot.

    Starts are judged in the order of the plan, each beside those before it. What the plan does to running jobs goes in
    as a whole, with the starts, if the referee accepts it, or not at all. Where a start is refused, so are stops whose
    room nothing that is left needs.
    """
    refused: list[Refused] = []
    starts = _starts(record, plan, refused)
    changed = _changed(plan)
    if changed:
        whole, why = _with_changes(record, plan, starts, changed, snapshot(), sparing=bool(refused))
        if whole is not None:
            kept = set(_changed(whole))
            refused += [
                Refused(job=job, why="nothing that is left needs its room") for job in changed if job not in kept
            ]
            return whole, tuple(refused)
        refused += [Refused(job=job, why=why) for job in changed]
    fitting = _fitting(record, form, starts, refused)
    return form.write(fitting), tuple(refused)


def _changed(plan: Plan) -> list[str]:
    """Return the running jobs to which a plan does something."""
    return [entry.job for kind in CHANGES for entry in getattr(plan, kind)]


def _starts(record: ClusterRecord, plan: Plan, refused: list[Refused]) -> list[Placement]:
    """Return the placements of jobs that the plan starts and that still wait."""
    ran = record.ran_at(plan.instance.revision)
    jobs, running = record.jobs, record.running
    starts = []
    for placement in plan.placements:
        job = placement.job
        if ran.get(job, job in running):
            continue  # it ran already
        if job in jobs and job not in running:
            starts.append(placement)
        elif job in ran:
            refused.append(Refused(job=job, why="it was started meanwhile"))
        else:
            refused.append(Refused(job=job, why="the cluster has it no more"))
    return starts


def _fitting(
    record: ClusterRecord, form: StartsPlan, starts: Sequence[Placement], refused: list[Refused]
) -> list[Placement]:
    """Return the starts that the ledger accepts, each beside those before it; the ledger is left as it was."""
    fitting: list[Placement] = []
    held: list[str] = []
    parts = [starts]
    try:
        while parts:
            part = parts.pop()
            broken = form.judge(form.write(part)).violations
            if not broken:
                fitting += part
                for placement in part if parts else ():  # beside which others are judged
                    record.ledger.start(running_record(placement, record.now_ms, FIXED))
                    held.append(placement.job)
            elif len(part) == 1:
                refused.append(Refused(job=part[0].job, why=str(broken[0])))
            else:  # few do not fit: halves without them go in at once
                parts += [part[len(part) // 2 :], part[: len(part) // 2]]
    finally:
        for job in held:
            record.ledger.stop(job)
    return fitting


def _with_changes(
    record: ClusterRecord,
    plan: Plan,
    starts: Sequence[Placement],
    changed: Sequence[str],
    now: Instance,
    *,
    sparing: bool,
) -> tuple[Plan | None, str]:
    """Return the plan with all that it does to running jobs, or None and why; ``sparing``: less needless stops."""
    gone = [job for job in changed if job not in record.running]
    if gone:
        return None, f"job {gone[0]!r}, which the plan changes too, runs no more"
    whole = _whole(record, plan, starts, set(changed), now)
    broken = violations(now, whole)
    if broken:
        return None, str(broken[0])
    if sparing:
        actions = plan_actions(now, whole)
        needed = {number for action in actions for number in action.after}
        needless = {a.job for n, a in enumerate(actions) if a.do in ("shrink", "preempt") and n not in needed}
        less = _whole(record, plan, starts, set(changed) - needless, now)
        if not violations(now, less):
            whole = less
    return whole, ""


def _whole(record: ClusterRecord, plan: Plan, starts: Sequence[Placement], changed: set[str], now: Instance) -> Plan:
    """Return the whole plan in which these starts and changes happen and all else stays as it is."""
    new = [placement for placement in plan.placements if placement.job in changed]
    stay = [held for job, held in record.running.items() if job not in changed]
    placements = record.granted_anew([*new, *stay, *starts])
    placed = {placement.job for placement in placements}
    waiting = tuple(
        Unplaced(job=job, reason="not_reached", detail="not placed by a plan that was made before")
        for job in record.jobs
        if job not in placed
    )
    kept = {kind: tuple(entry for entry in getattr(plan, kind) if entry.job in changed) for kind in CHANGES}
    return plan_of(now, plan.policy.values, placements=tuple(placements), unplaced=waiting, **kept)
