"""
Shares of GPUs: what is granted above the requests (DynamoML 3.1), and whether those that a file states can be.

The engine counts requests only. Shares are computed last, when placements are written: in a plan, in the snapshot of a
live cluster, in the snapshots of a simulation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeVar

from placeopt.errors import BadInput
from placeopt.model import Job, Placement
from placeopt.model.base import trusted
from placeopt.model.policy import ShareMode

Bounds = tuple[int, int]
"""Request and limit of a job on a GPU, in thousandths."""
Record = TypeVar("Record", bound=Placement)


def grants(bounds: Mapping[str, Bounds]) -> dict[str, int]:
    """Return the share of each job on one GPU; ``bounds`` has all jobs on it, by id."""
    # With R = 1000 - the sum of requests (at least 0) and w = limit - request, a job is granted its request + min(w,
    # floor(R w / sum of w)). The rest of R goes out one thousandth each to the jobs below their limits, in ascending
    # order of their ids.
    rest = max(0, 1000 - sum(request for request, _ in bounds.values()))
    weights = sum(limit - request for request, limit in bounds.values())
    if weights <= rest:
        return {job: limit for job, (_, limit) in bounds.items()}
    share = {job: request + rest * (limit - request) // weights for job, (request, limit) in bounds.items()}
    left = rest + sum(request for request, _ in bounds.values()) - sum(share.values())
    below = sorted(job for job, (request, limit) in bounds.items() if limit > request)  # R < sum of w: below the limit
    for job in below[:left]:  # of the floors, each loses less than one
        share[job] += 1
    return share


def granted(
    placements: Iterable[Record], jobs: Mapping[str, Job], mode: ShareMode, beside: Iterable[Placement] = ()
) -> list[Record]:
    """
    Return ``placements`` with the shares granted beside others; one whose shares are these already is the same object.

    ``jobs`` by id. ``beside``: placements of other jobs; all on the GPUs concerned are in one list or the other.
    """
    out = list(placements)
    limited = [i for i, placement in enumerate(out) if len({*bounds_of(placement, jobs, mode)}) > 1]
    if not limited:
        return out
    on = {(a.node, gpu): dict[str, Bounds]() for i in limited for a in out[i].assignments for gpu in a.gpus}
    holders: list[Placement] = [*out, *beside]
    for holder in holders:
        mine = bounds_of(holder, jobs, mode)
        for assignment in holder.assignments:
            for gpu in assignment.gpus:
                if (assignment.node, gpu) in on:
                    on[assignment.node, gpu][holder.job] = mine
    share = {place: grants(here) for place, here in on.items()}
    for i in limited:
        job, assignments = out[i].job, out[i].assignments
        out[i] = with_shares(out[i], [{gpu: share[a.node, gpu][job] for gpu in a.gpus} for a in assignments])
    return out


def bounds_of(placement: Placement, jobs: Mapping[str, Job], mode: ShareMode) -> Bounds:
    """Return request and limit of a placed job, (0, 0) without such a job or option, which the referee refuses."""
    options = jobs[placement.job].options if placement.job in jobs else ()
    for option in options:
        if option.id == placement.option:
            milli, limit = option.demand.gpu_milli, option.demand.gpu_milli_limit
            return milli, limit if mode == "fraction" and limit else milli
    return 0, 0


def has_limit(job: Job) -> bool:
    """Return whether more than its request may be granted to a job."""
    return any((option.demand.gpu_milli_limit or 0) > option.demand.gpu_milli for option in job.options)


def with_shares(placement: Record, shares: Sequence[Mapping[str, int]], field: str = "gpus") -> Record:
    """Return a placement with other shares, or ``starts``, of its GPUs, by assignment; the same if it has these."""
    held = list(zip(placement.assignments, shares, strict=True))
    if all(getattr(a, field) == share for a, share in held):
        return placement
    assignments = tuple(trusted(type(a), {**dict(a), field: dict(share)}) for a, share in held)
    return trusted(type(placement), {**dict(placement), "assignments": assignments})


def refuse_overfull(running: Iterable[Placement]) -> None:
    """
    Raise ``BadInput`` where running jobs are stated to hold more than all of a GPU together; a matter of ``fraction``.

    Only requests count in a round, but a file that states more than there is contradicts itself.
    """
    held: dict[tuple[str, str], int] = {}
    for placement in running:
        for assignment in placement.assignments:
            for gpu, milli in assignment.gpus.items():
                held[assignment.node, gpu] = held.get((assignment.node, gpu), 0) + milli
    for (node, gpu), milli in held.items():
        if milli > 1000:
            jobs = [p.job for p in running if any(a.node == node and gpu in a.gpus for a in p.assignments)]
            raise BadInput(
                f"running placements: node {node!r} gpu {gpu}: {milli} of 1000 milli held by jobs "
                f"{', '.join(map(repr, jobs[:5]))}; state what each holds, at least its request"
            )
