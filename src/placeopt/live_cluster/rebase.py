"""A plan of an earlier revision, carried over to the present one: what still fits goes in, the rest is named."""

from __future__ import annotations

from collections.abc import Sequence

from placeopt.actions import plan_actions
from placeopt.check import violations
from placeopt.live_cluster.cluster_record import ClusterRecord, running_record
from placeopt.live_cluster.cluster_state import ClusterState
from placeopt.model import Placement, Plan
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


def rebased_plan(state: ClusterState, plan: Plan) -> tuple[Plan, tuple[Refused, ...]]:
    """
    Return what of a plan can be carried out now, as a plan of the present revision that is judged, and what cannot.

    Starts are judged in the order of the plan, each beside those before it. What the plan does to running jobs goes in
    as a whole, with the starts, if the referee accepts it, or not at all. Where a start is refused, so are stops whose
    room nothing that is left needs.
    """
    refused: list[Refused] = []
    starts = _starts(state.record, plan, refused)
    changed = _changed(plan)
    if changed:
        whole, why = _with_changes(state, plan, starts, changed, sparing=bool(refused))
        if whole is not None:
            needless = set(changed) - set(_changed(whole))
            why, changed = "nothing that is left needs its room", [job for job in changed if job in needless]
        refused += [Refused(job=job, why=why) for job in changed]
        if whole is not None:
            return whole, tuple(refused)
    fitting = _fitting(state, starts, refused)
    return state.form.write(fitting), tuple(refused)


def _changed(plan: Plan) -> list[str]:
    """Return the running jobs to which a plan does something."""
    return [entry.job for kind in CHANGES for entry in getattr(plan, kind)]


def _starts(record: ClusterRecord, plan: Plan, refused: list[Refused]) -> list[Placement]:
    """Return the placements of jobs that the plan starts and that still wait."""
    ran = record.history.ran_at(plan.instance.revision)
    jobs, running = record.jobs, record.running
    starts = []
    for placement in plan.placements:
        job = placement.job
        if ran.get(job, job in running):
            continue  # it ran already
        if job in jobs and job not in running:
            starts.append(placement)
        else:
            why = "it was started meanwhile" if job in ran else "the cluster has it no more"
            refused.append(Refused(job=job, why=why))
    return starts


def _fitting(state: ClusterState, starts: Sequence[Placement], refused: list[Refused]) -> list[Placement]:
    """Return the starts that the ledger accepts, each beside those before it; the ledger is left as it was."""
    record, form = state.record, state.form
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
    state: ClusterState, plan: Plan, starts: Sequence[Placement], changed: Sequence[str], *, sparing: bool
) -> tuple[Plan | None, str]:
    """Return the plan with all that it does to running jobs, or None and why; ``sparing``: less needless stops."""
    gone = [job for job in changed if job not in state.record.running]
    if gone:
        return None, f"job {gone[0]!r}, which the plan changes too, runs no more"
    whole = _whole(state, plan, starts, set(changed))
    broken = violations(state.snapshot, whole)
    if broken:
        return None, str(broken[0])
    if sparing:
        actions = plan_actions(state.snapshot, whole)
        needed = {number for action in actions for number in action.after}
        needless = {a.job for n, a in enumerate(actions) if a.do in ("shrink", "preempt") and n not in needed}
        less = _whole(state, plan, starts, set(changed) - needless)
        if not violations(state.snapshot, less):
            whole = less
    return whole, ""


def _whole(state: ClusterState, plan: Plan, starts: Sequence[Placement], changed: set[str]) -> Plan:
    """Return the whole plan in which these starts and changes happen and all else stays as it is."""
    record = state.record
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
    return plan_of(state.snapshot, plan.policy.values, placements=tuple(placements), unplaced=waiting, **kept)
