"""The remedies of a waiting job, put together: each the least of its kind, or why there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TypeVar

from placeopt.edits import Stop
from placeopt.explain.fixed_round import cheapest_removal, judged, worths
from placeopt.explain.question import Question
from placeopt.explain.records import BestPlace, DomainsMin, GpuName, Preempt, Remedies, WorkersMax
from placeopt.explain.remedies import fewest_domains, first_level, most_workers
from placeopt.explain.words import sentences
from placeopt.feasibility.free_capacity import FreeCapacity
from placeopt.feasibility.minimal_utility import Reach
from placeopt.model import Placement

OWN = ("workers_max", "domains_min", "level")
"""Remedies on the job's side."""
REMEDIES = (*OWN, "preempt")
T = TypeVar("T")
UNTRIED = "not worked out where minimal utilities count"


class NoRemedy(Exception):
    """There is no such remedy; the text says why."""


def place_of(q: Question, best: Reach) -> BestPlace:
    """Put the best place into a record."""
    problem = q.case.problem
    return BestPlace(
        utility=best.utility,
        asks=q.case.job.utility_min_thousandths or 0,
        option=problem.options.name[best.placement.option],
        nodes=tuple(problem.node_ids[node] for node in dict.fromkeys(best.placement.nodes)),
        gpus=_named(q, best.placement.gpus),
        falls_short=tuple(problem.job_ids[job] for job in best.hurt),
    )


def remedies(q: Question, room: FreeCapacity, held: Sequence[Placement]) -> Remedies:
    """Return every remedy of the job beside what is ``held``, where it does not fit; those without a solver first."""
    fields: dict[str, object] = {}
    if judged(q):
        q.none |= dict.fromkeys(OWN, UNTRIED)
    else:
        fields["workers_max"] = _offer(q, "workers_max", lambda: _workers_max(q, room))
        fields["domains_min"] = _domains_min(q, room)
        fields["level"] = q.within("level", lambda: first_level(room, q.requirements, q.deadline))
        if fields["level"] is None:
            q.none["level"] = "it does not fit into the whole cluster, however its workers are distributed"
    fields["preempt"] = _offer(q, "preempt", lambda: _preempt(q, held))
    return _offered(q, fields)


def _offer(q: Question, remedy: str, work: Callable[[], T]) -> T | None:
    """Return the remedy that ``work`` finds; None, with the reason noted, where there is none."""
    try:
        return work()
    except NoRemedy as reason:
        q.none[remedy] = str(reason)
        return None


def _offered(q: Question, fields: dict[str, object]) -> Remedies:
    unanswered = {part: why for part, why in q.open.items() if part in REMEDIES}
    offered = Remedies.model_validate({**fields, "none": {**q.none, **unanswered}})
    return offered.model_copy(update={"said": sentences(offered, q.requirements)})


def _workers_max(q: Question, room: FreeCapacity) -> WorkersMax:
    if all(requirement.fewest == 1 for requirement in q.requirements):
        raise NoRemedy("it needs only one worker")
    smaller = q.within("workers_max", lambda: most_workers(room, q.requirements, q.deadline))
    if smaller is None:
        raise NoRemedy("no smaller number of workers would fit")
    return smaller


def _domains_min(q: Question, room: FreeCapacity) -> tuple[DomainsMin, ...]:
    levels = list(dict.fromkeys(split.level for requirement in q.requirements for split in requirement.splits))
    by_level = [
        q.within("domains_min", partial(fewest_domains, room, q.requirements, level, q.deadline)) for level in levels
    ]
    if not any(by_level):
        q.none["domains_min"] = (
            f"no number of {' or '.join(levels)} domains would be enough"
            if levels
            else "it asks for no number of domains"
        )
    return tuple(fewest for fewest in by_level if fewest)


def _named(q: Question, gpus: Iterable[int]) -> tuple[GpuName, ...]:
    """Name GPUs, in order."""
    problem = q.case.problem
    return tuple(
        GpuName(node=problem.node_ids[problem.gpu_node[gpu]], gpu=int(problem.topology.gpu_index[gpu]))
        for gpu in sorted(gpus)
    )


def _preempt(q: Question, held: Sequence[Placement]) -> Preempt:
    may = {running.job for running in q.instance.running if running.preemptible}
    changes = q.plan.policy.values.changes
    values = worths(q, (one for one in held if one.job in may and one.job != q.case.job.id))
    if not values:
        raise NoRemedy("no running job is preemptible")
    prices = {job: value + changes.preemption_price for job, value in values.items()}
    removal = q.within("preempt", lambda: cheapest_removal(q, held, prices, last_first=changes.last_submitted_first))
    if removal is None:
        raise NoRemedy("it would not start without all preemptible jobs either")
    return Preempt(
        option=removal.option,
        jobs=removal.rivals(q, values),
        price=sum(prices[job] for job in removal.jobs),
        allowed=len(removal.jobs) + len(q.plan.preempted) <= changes.preemptions_max,
        proven=removal.proven,
        steps=(Stop(do="stop", jobs=removal.jobs),),
    )
