"""A plan of an earlier revision, carried over to the present one: what still fits goes in, the rest is named."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set

from placeopt.actions import plan_actions
from placeopt.check import Violation, violations
from placeopt.live_cluster.cluster_record import ClusterRecord, running_record
from placeopt.live_cluster.starts_plan import StartsPlan
from placeopt.model import Instance, Placement, Plan
from placeopt.model.base import Id, Record
from placeopt.model.plan import InstanceRef, Unplaced

FIXED = (False, False, False)


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


def rebase(
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
    starts = _allowed(form, starts, record.nodes_changed_since(plan.instance.revision), refused)
    fitting = _fitting(record, form, starts, refused)
    return form.write(fitting), tuple(refused)


def _changed(plan: Plan) -> list[str]:
    """Return the running jobs to which a plan does something."""
    return [*(e.job for e in plan.moved), *(e.job for e in plan.shrunk), *(e.job for e in plan.preempted)]


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


def _allowed(
    form: StartsPlan, starts: Sequence[Placement], changed: Set[str], refused: list[Refused]
) -> list[Placement]:
    """
    Return the starts but those on ``changed`` nodes that break a rule even alone: beside others they break it too.

    Few starts are on such nodes, and most that have come too late are, so that the others are judged once, not twice.
    """
    allowed = []
    for placement in starts:
        if any(held.node in changed for held in placement.assignments):
            broken = form.judge(form.write((placement,))).violations
            if broken:
                refused.append(Refused(job=placement.job, why=str(broken[0])))
                continue
        allowed.append(placement)
    return allowed


def _fitting(
    record: ClusterRecord, form: StartsPlan, starts: Sequence[Placement], refused: list[Refused]
) -> list[Placement]:
    """Return the starts that the ledger accepts, each beside those before it; the ledger is left as it was."""
    fitting: list[Placement] = []
    held: list[Placement] = []
    suspects = _suspects(form.judge(form.write(starts)).violations, starts)
    if not suspects:
        return list(starts)
    rest = [placement for placement in starts if placement.job not in suspects]
    parts = [[placement for placement in starts if placement.job in suspects], rest] if rest else [starts]
    try:
        while parts:
            part = parts.pop()
            broken = form.judge(form.write(part)).violations
            if not broken:
                fitting += part
                for placement in part if parts else ():  # beside which others are judged
                    record.ledger.start(running_record(placement, record.now_ms, FIXED))
                    held.append(placement)
            elif len(part) == 1:
                refused.append(Refused(job=part[0].job, why=str(broken[0])))
            else:  # few do not fit: halves without them go in at once
                parts += [part[len(part) // 2 :], part[: len(part) // 2]]
    finally:
        for placement in held:
            record.ledger.stop(placement.job)
    return fitting


def _suspects(broken: Sequence[Violation], starts: Sequence[Placement]) -> set[str]:
    """Return the starts that may break these rules; all of them, where a rule is about neither a job nor a node."""
    if any(found.job is None and found.node is None for found in broken):
        return {placement.job for placement in starts}
    nodes = {found.node for found in broken if found.job is None}
    there = {placement.job for placement in starts if any(held.node in nodes for held in placement.assignments)}
    return there | {found.job for found in broken if found.job is not None}


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
    return plan.model_copy(
        update={
            "instance": InstanceRef(name=now.name, digest=now.digest, revision=now.revision),
            "placements": tuple(placements),
            "unplaced": waiting,
            "moved": tuple(entry for entry in plan.moved if entry.job in changed),
            "shrunk": tuple(entry for entry in plan.shrunk if entry.job in changed),
            "preempted": tuple(entry for entry in plan.preempted if entry.job in changed),
            "standing": (),
        }
    )
