"""The grants of DynamoML 3.1 stated once more, by exact fractions: for plans that tests write, and to judge others."""

from collections.abc import Iterable
from fractions import Fraction
from math import floor
from typing import TypeVar

from placeopt.model import Instance, Placement, Policy

P = TypeVar("P", bound=Placement)
Place = tuple[str, str]
"""Node and GPU."""


def due(instance: Instance, placements: Iterable[Placement], policy: Policy) -> dict[tuple[str, Place], int]:
    """Return the share of each (job, GPU) that the rule gives; requests alone unless the policy's mode is fraction."""
    demands = {(job.id, option.id): option.demand for job in instance.jobs for option in job.options}
    on: dict[Place, dict[str, tuple[int, int]]] = {}
    for placement in placements:
        demand = demands.get((placement.job, placement.option))
        if demand is None:
            continue  # no such job or option: a test of the referee
        limit = demand.gpu_milli if demand.gpu_milli_limit is None else demand.gpu_milli_limit
        for assignment in placement.assignments:
            for gpu in assignment.gpus:
                on.setdefault((assignment.node, gpu), {})[placement.job] = (demand.gpu_milli, limit)
    out: dict[tuple[str, Place], int] = {}
    for place, jobs in on.items():
        rest = 1000 - sum(request for request, _ in jobs.values())
        wanted = sum(limit - request for request, limit in jobs.values())
        if policy.share_mode != "fraction" or rest <= 0 or not wanted:
            out |= {(job, place): request for job, (request, _) in jobs.items()}
            continue
        fill = min(Fraction(1), Fraction(rest, wanted))
        exact = {job: request + fill * (limit - request) for job, (request, limit) in jobs.items()}
        left = min(rest, wanted) - sum(floor(exact[job]) - jobs[job][0] for job in jobs)
        for job in sorted(jobs):
            more = left > 0 and floor(exact[job]) < jobs[job][1]
            out[job, place] = floor(exact[job]) + more
            left -= more
    return out


def wrong_shares(instance: Instance, placements: tuple[Placement, ...], judged: set[str] | None = None) -> list[str]:
    """Compare the shares of placements, all that there are on their GPUs, with the rule; of the jobs ``judged``."""
    expected = due(instance, placements, instance.policy)
    found = {(p.job, (a.node, gpu)): milli for p in placements for a in p.assignments for gpu, milli in a.gpus.items()}
    return [
        f"{job} on {place}: {found[job, place]} milli, expected {milli}"
        for (job, place), milli in expected.items()
        if found[job, place] != milli and (judged is None or job in judged)
    ]


def with_due(instance: Instance, placements: Iterable[P], policy: Policy) -> tuple[P, ...]:
    """Return the placements with the shares that the rule gives."""
    listed = tuple(placements)
    shares = due(instance, listed, policy)
    out = []
    for held in listed:
        assignments = []
        for a in held.assignments:
            gpus = {gpu: shares.get((held.job, (a.node, gpu)), milli) for gpu, milli in a.gpus.items()}
            assignments.append(a.model_copy(update={"gpus": gpus}))
        out.append(held.model_copy(update={"assignments": tuple(assignments)}))
    return tuple(out)
