"""
A whole queue explained: every statement tried by looking at every node.

Of all waiting jobs: whether they fit beside the plan and beside what runs, so how many wait for each reason; how many
fit alone after each single change, also after those that are not named. Of the jobs that are named as examples: that
the conflict stands with everything else dropped from the record, and not without any one of its members.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from helpers.free_nodes import FreeNodes, assert_known
from helpers.instance_edits import edits, groups_of, name_of, single_changes
from placeopt import Instance, Plan
from placeopt.explain import QueueExplanation, WaitingReason
from placeopt.model import Job, Placement, Running


@dataclass
class Tried:
    """Of one round: how much was tried, and what was wrong."""

    waiting: int = 0
    changes: int = 0
    examples: int = 0
    members: int = 0
    faults: list[str] = field(default_factory=list)


def tried(round_: Instance, plan: Plan, queue: QueueExplanation) -> Tried:
    """Try all statements about the queue of one round."""
    assert queue.proven
    assert_known(round_)
    names = {unplaced.job for unplaced in plan.unplaced}
    waiting = [job for job in round_.jobs if job.id in names]
    known = {held.job for held in round_.running}
    assert known <= {placement.job for placement in plan.placements}, "running jobs were changed"
    found = Tried(len(waiting))
    beside_plan, beside_running = FreeNodes(round_, plan.placements), FreeNodes(round_, round_.running)
    open_ = [job for job in waiting if not beside_plan.fits(job)]
    reasons = Counter("outvoted" if beside_running.fits(job) else "conflict" for job in open_)
    stated = Counter({one.reason: 0 for one in queue.reasons if one.constraints})
    for one in queue.reasons:
        stated[one.reason] += one.jobs if one.constraints else 0
    if +stated != +reasons:
        found.faults.append(f"reasons {dict(stated)}, true are {dict(reasons)}")
    alone = {one.change: one.jobs_alone for one in queue.changes}
    for change, edited in single_changes(round_, plan):
        true, said = sum(map(FreeNodes(edited, plan.placements).fits, open_)), alone.pop(change, 0)
        found.changes += 1
        if true != said:
            found.faults.append(f"{change}: {said} fit alone, true are {true}")
    found.faults += [f"{change!r} is no change" for change in alone]
    record = {job.id: job for job in waiting}
    for reason in queue.reasons:
        for name in reason.examples if reason.constraints else ():
            found.examples += 1
            found.members += len(reason.constraints)
            found.faults += _conflict_faults(round_, plan, record[name], reason)
    return found


def _conflict_faults(round_: Instance, plan: Plan, job: Job, reason: WaitingReason) -> Iterator[str]:
    """Infeasible with everything else dropped; feasible without any one member."""
    held = round_.running if reason.reason == "conflict" else plan.placements
    groups = groups_of(job)
    kept = [group for group in groups if name_of(group) in reason.constraints]
    if len(kept) != len(reason.constraints):
        yield f"{job.id}: {reason.constraints} are not all constraints"
    dropped = [group for group in groups if group not in kept]
    if _fits_without(round_, held, job, dropped):
        yield f"{job.id}: {kept} can hold together"
    for group in kept:
        if not _fits_without(round_, held, job, [*dropped, group]):
            yield f"{job.id}: {kept} cannot hold without {group} either"


def _fits_without(round_: Instance, held: Iterable[Placement | Running], job: Job, groups: list[str]) -> bool:
    for edited in edits(round_, job.id, groups):
        if FreeNodes(edited, held).fits(next(one for one in edited.jobs if one.id == job.id)):
            return True
    return False
