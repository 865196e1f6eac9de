"""The remedies of a waiting job, put together: each the least of its kind, or why there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TypeVar

from placeopt.edits import AnyStep, Stop
from placeopt.errors import OutOfTime
from placeopt.explain.fixed_round import cheapest_removal, judged, worths
from placeopt.explain.question import Beside, Question
from placeopt.explain.records import (
    BestPlace,
    Constraint,
    DomainsMin,
    GpuName,
    Preempt,
    Remedies,
    SingleChange,
    WorkersMax,
)
from placeopt.explain.remedies import fewest_domains, first_level, most_workers
from placeopt.explain.steps import helping, together, with_domains, with_workers
from placeopt.explain.words import sentences
from placeopt.feasibility.free_capacity import FreeCapacity
from placeopt.feasibility.minimal_utility import Reach

OWN = ("workers_max", "domains_min", "level")
"""Remedies on the job's side."""
REMEDIES = (*OWN, "preempt", "changes")
T = TypeVar("T")
UNTRIED = "not worked out where minimal utilities count"
UNTRIED_JOINT = "not worked out for jobs with groups or relations"


class NoRemedy(Exception):
    """There is no such remedy; the text says why."""


def place_of(q: Question, best: Reach) -> BestPlace:
    """Put the best place into a record."""
    problem = q.problem
    return BestPlace(
        utility=best.utility,
        asks=q.job.utility_min_thousandths or 0,
        option=problem.options.name[best.placement.option],
        nodes=tuple(problem.node_ids[node] for node in dict.fromkeys(best.placement.nodes)),
        gpus=_named(q, best.placement.gpus),
        falls_short=tuple(problem.job_ids[job] for job in best.hurt),
    )


def remedies(q: Question, beside: Beside, held: Sequence[Constraint] = ()) -> Remedies:
    """
    Return every remedy of the job, which does not fit ``beside``; those without a solver first.

    ``held``: The constraints that cannot hold together there.
    """
    none: dict[str, str] = {}

    def offer(remedy: str, work: Callable[[], T]) -> T | None:
        try:
            return q.within(remedy, work)
        except NoRemedy as reason:
            none[remedy] = str(reason)
            return None

    fields: dict[str, object] = {}
    if q.is_joint or judged(q):
        none |= dict.fromkeys(OWN, UNTRIED_JOINT if q.is_joint else UNTRIED)
    else:
        room = q.room(beside)
        fields["workers_max"] = offer("workers_max", lambda: _workers_max(q, room))
        fields["domains_min"] = offer("domains_min", lambda: _domains_min(q, room)) or ()
        fields["level"] = offer("level", lambda: _level(q, room))
    fields["preempt"] = offer("preempt", lambda: _preempt(q, beside))
    fields["changes"] = offer("changes", lambda: _changes(q, beside, held)) or ()
    unanswered = {part: why for part, why in q.open.items() if part in REMEDIES}
    offered = Remedies.model_validate({**fields, "none": {**none, **unanswered}})
    return offered.model_copy(update={"said": sentences(offered, q.requirements), "steps": _steps(q, offered)})


def _steps(q: Question, offered: Remedies) -> dict[str, tuple[AnyStep, ...]]:
    """Return the remedies as patches."""
    steps: dict[str, tuple[AnyStep, ...]] = {}
    if offered.workers_max is not None:
        steps["workers_max"] = with_workers(q.job, offered.workers_max)
    for fewest in offered.domains_min:
        steps[f"domains_min:{fewest.level}"] = with_domains(q.job, fewest)
    if offered.level is not None:
        steps["level"] = together(q.job, offered.level)
    if offered.preempt is not None:
        steps["preempt"] = (Stop(do="stop", jobs=tuple(rival.job for rival in offered.preempt.jobs)),)
    return steps


def _changes(q: Question, beside: Beside, held: Sequence[Constraint]) -> tuple[SingleChange, ...]:
    if not q.is_joint and judged(q):
        raise NoRemedy(UNTRIED)
    found: list[SingleChange] = []
    try:
        found.extend(helping(q, beside, held))
    except OutOfTime:
        if not found:
            raise NoRemedy("not all were tried: no time left") from None
    if not found:
        raise NoRemedy("no single change of the cluster, its queue or its rules is enough")
    return tuple(found)


def _level(q: Question, room: FreeCapacity) -> str:
    level = first_level(room, q.requirements, q.deadline)
    if level is None:
        raise NoRemedy("it does not fit into the whole cluster, however its workers are distributed")
    return level


def _workers_max(q: Question, room: FreeCapacity) -> WorkersMax:
    if all(requirement.fewest == 1 for requirement in q.requirements):
        raise NoRemedy("it needs only one worker")
    smaller = most_workers(room, q.requirements, q.deadline)
    if smaller is None:
        raise NoRemedy("no smaller number of workers would fit")
    return smaller


def _domains_min(q: Question, room: FreeCapacity) -> tuple[DomainsMin, ...]:
    levels = list(dict.fromkeys(split.level for requirement in q.requirements for split in requirement.splits))
    if not levels:
        raise NoRemedy("it asks for no number of domains")
    found = [fewest_domains(room, q.requirements, level, q.deadline) for level in levels]
    if not any(found):
        raise NoRemedy(f"no number of {' or '.join(levels)} domains would be enough")
    return tuple(fewest for fewest in found if fewest)


def _named(q: Question, gpus: Iterable[int]) -> tuple[GpuName, ...]:
    """Name GPUs, in order."""
    problem = q.problem
    return tuple(
        GpuName(node=problem.node_ids[problem.gpu_node[gpu]], gpu=int(problem.topology.gpu_index[gpu]))
        for gpu in sorted(gpus)
    )


def _preempt(q: Question, beside: Beside) -> Preempt:
    if q.in_part:
        raise NoRemedy("not worked out for jobs that run in part")
    held = q.held(beside)
    may = {running.job for running in q.instance.running if running.preemptible}
    changes = q.plan.policy.values.changes
    values = worths(q, (one for one in held if one.job in may and one.job != q.job.id))
    if not values:
        raise NoRemedy("no running job is preemptible")
    prices = {job: value + changes.preemption_price for job, value in values.items()}
    removal = cheapest_removal(q, held, prices, last_first=changes.last_submitted_first)
    if removal is None:
        raise NoRemedy("it would not start without all preemptible jobs either")
    return Preempt(
        option=removal.option,
        jobs=removal.rivals(q, values),
        price=sum(prices[job] for job in removal.jobs),
        allowed=len(removal.jobs) + len(q.plan.preempted) <= changes.preemptions_max,
        proven=removal.proven,
    )
