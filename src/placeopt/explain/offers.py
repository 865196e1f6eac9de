"""The remedies of a waiting job, put together: each the least of its kind, or why there is none."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, combinations, pairwise
from typing import TypeVar

import numpy as np

from placeopt.explain.question import Question
from placeopt.explain.records import BestPlace, DomainsMin, FreedGpu, GpusToFree, Preempt, Remedies, WorkersMax
from placeopt.explain.remedies import fewest_domains, first_level, most_workers
from placeopt.explain.removal import busy_gpus, cheapest_removal, least_given_up, rivals
from placeopt.explain.words import sentences
from placeopt.feasibility.free_capacity import FreeCapacity
from placeopt.feasibility.minimal_utility import Reach, reach, utility_binds, without_minima
from placeopt.problem import Move, State
from placeopt.problem.changes import by_arrival

OWN = ("workers_max", "domains_min", "level")
"""Remedies on the job's side."""
REMEDIES = (*OWN, "gpus_to_free", "preempt")
T = TypeVar("T")
UNTRIED = "not worked out where minimal utilities count"


class NoRemedy(Exception):
    """There is no such remedy; the text says why."""


def judged(q: Question) -> bool:
    """Return whether minimal utilities, its own or those of jobs that start, matter to the job."""
    return utility_binds(q.case.problem, q.case.number)


def reach_beside(q: Question, state: State, gone: Sequence[int] = ()) -> Reach | None:
    """Return the best place by minimal utilities beside ``state`` without the jobs ``gone``."""
    free = without_minima(state)
    for job in gone:
        free.apply(Move(job, None))
    return reach(free, q.case.number, q.deadline)


def place_of(q: Question, best: Reach) -> BestPlace:
    """Put the best place into a record."""
    problem = q.case.problem
    return BestPlace(
        utility=best.utility,
        asks=q.case.job.utility_min_thousandths or 0,
        option=problem.options.name[best.placement.option],
        nodes=tuple(problem.node_ids[node] for node in dict.fromkeys(best.placement.nodes)),
        gpus=_freed(q, best.placement.gpus),
        falls_short=tuple(problem.job_ids[job] for job in best.hurt),
    )


def remedies(q: Question, state: State, room: FreeCapacity) -> Remedies:
    """Return every remedy of the job beside ``state``, where it does not fit; first those that need no solver."""
    fields: dict[str, object] = {}
    if judged(q):
        q.none |= dict.fromkeys(OWN, UNTRIED)
    else:
        fields["workers_max"] = _offer(q, "workers_max", lambda: _workers_max(q, room))
        fields["domains_min"] = _domains_min(q, room)
        fields["level"] = q.within("level", lambda: first_level(room, q.requirements, q.deadline))
        if fields["level"] is None:
            q.none["level"] = "it does not fit into the whole cluster, however its workers are distributed"
    fields["preempt"] = _offer(q, "preempt", lambda: _preempt(q, state))
    fields["gpus_to_free"] = _offer(q, "gpus_to_free", lambda: _gpus_to_free(q, state))
    return _offered(q, fields)


def to_reach(q: Question, state: State) -> Remedies:
    """Return the remedies of a job that has room beside ``state``, but nowhere at its minimal utility."""
    q.none |= {remedy: UNTRIED for remedy in REMEDIES if remedy != "gpus_to_free"}
    return _offered(q, {"gpus_to_free": _offer(q, "gpus_to_free", lambda: _freed_to_reach(q, state, []))})


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


def _gpus_to_free(q: Question, state: State) -> GpusToFree:
    requirements = [requirement for requirement in q.requirements if requirement.gpus]
    if not requirements:
        raise NoRemedy("it asks for no GPU")
    busy = busy_gpus(q.case, state, requirements)
    least = q.within("gpus_to_free", lambda: least_given_up(busy, requirements, q.solve, q.deadline))
    if least is None:
        raise NoRemedy("it would not fit with all of them free either")
    gpus = [gpu for count, group in zip(least.given, busy.groups, strict=True) for gpu in group[:count]]
    if not judged(q):
        return GpusToFree(option=least.option, gpus=_freed(q, gpus), proven=least.proven)
    if not least.proven:
        raise NoRemedy("not answered: for room alone the fewest are not proven")
    return _freed_to_reach(q, state, gpus)


def _freed_to_reach(q: Question, state: State, gpus: Sequence[int]) -> GpusToFree:
    """Return the fewest GPUs by room, if they do for minimal utilities too; else the fewest that do."""
    fewest = q.within("gpus_to_free", lambda: _fewest_freed(q, without_minima(state), gpus))
    if fewest is None:
        raise NoRemedy("with no GPUs freed it would have its minimal utility")
    reached, which = fewest
    option = q.case.problem.options.name[reached.placement.option]
    return GpusToFree(option=option, gpus=_freed(q, which), proven=True)


def _freed(q: Question, gpus: Iterable[int]) -> tuple[FreedGpu, ...]:
    """Name GPUs, in order."""
    problem = q.case.problem
    return tuple(
        FreedGpu(node=problem.node_ids[problem.gpu_node[gpu]], gpu=int(problem.topology.gpu_index[gpu]))
        for gpu in sorted(gpus)
    )


def _fewest_freed(q: Question, free: State, by_room: Sequence[int]) -> tuple[Reach, Sequence[int]] | None:
    """
    Return the fewest GPUs, not fewer than ``by_room``, that let the job in at its minimal utility; and its best place.

    ``by_room`` is tried first, then all sets, the small ones first; of options on a single node the sets of each node.
    A freed GPU gives back what it does in `Gpus`, and a job that holds no other on the node is not a neighbour there
    any more. Raises ``OutOfTime`` at the deadline.
    """
    busy = np.flatnonzero(free.gpu_jobs > 0).tolist()
    groups = [busy]
    if all(requirement.on_one_node or requirement.most == 1 for requirement in q.requirements):
        gpu_node = free.problem.gpu_node  # GPUs of other nodes would not help
        groups = [[gpu for gpu in busy if gpu_node[gpu] == node] for node in dict.fromkeys(gpu_node[busy])]
    sizes = range(max(1, len(by_room)), len(busy) + 1)
    sets = chain.from_iterable(combinations(group, size) for size in sizes for group in groups)
    for gpus in chain([by_room] if by_room else [], sets):
        best = reach(_with_freed(free, gpus), q.case.number, q.deadline)
        if best is not None and best.reached:
            return best, gpus
    return None


def _with_freed(free: State, gpus: Sequence[int]) -> State:
    """Return the state in which no job holds these GPUs."""
    problem = free.problem
    state, gone = State(problem, free.allocation()), set(gpus)
    for job, held in enumerate(free.placements):
        mine = [] if held is None else [gpu for gpu in held.gpus if gpu in gone]
        if held is None or not mine:
            continue
        each = problem.options.demand[held.option] // max(1, int(problem.options.gpus[held.option]))
        for gpu in mine:
            state.node_free[problem.gpu_node[gpu]] += each
        left = tuple(gpu for gpu in held.gpus if gpu not in gone)
        state.placements[job] = replace(held, gpus=left) if left else None
        for node in set(held.nodes) - {int(problem.gpu_node[gpu]) for gpu in left}:
            del state.node_jobs[node][job]
    here = np.array(gpus, dtype=np.int64)
    state.gpu_free_milli[here], state.gpu_jobs[here], state.gpu_utilisation[here] = 1000, 0, 0
    state.gpu_free_memory[here] = problem.gpu_memory_mib[here]
    return state


def _preempt(q: Question, state: State) -> Preempt:
    may = {running.job for running in q.instance.running if running.preemptible}
    problem, changes = q.case.problem, q.plan.policy.values.changes
    held = {job: state.placements[job] for job in q.case.running if problem.job_ids[job] in may}
    values = {job: int(problem.options.value[place.option]) for job, place in held.items() if place is not None}
    if not values:
        raise NoRemedy("no running job is preemptible")
    jobs = list(values)
    prices = [value + changes.preemption_price for value in values.values()]
    order = _last_first(q, jobs) if changes.last_submitted_first else []
    cheapest = q.within("preempt", lambda: cheapest_removal(q, state, jobs, prices, order))
    if cheapest is None:
        raise NoRemedy("it would not fit without all preemptible jobs either")
    candidates, given = cheapest
    if judged(q):
        reached = q.within("preempt", lambda: reach_beside(q, state, candidates.leaving(given)))
        if reached is None or not reached.reached:
            raise NoRemedy("without the cheapest that hold its room it would stay below its minimal utility")
    gone = rivals(q, candidates, given, values)
    return Preempt(
        option=given.option,
        jobs=gone,
        price=sum(rival.value for rival in gone) + len(gone) * changes.preemption_price,
        allowed=len(gone) + len(q.plan.preempted) <= changes.preemptions_max,
        proven=given.proven,
    )


def _last_first(q: Question, jobs: Sequence[int]) -> list[tuple[int, int]]:
    """Pairs of positions in ``jobs``: the first may only stop if the second does, the next later of its queue."""
    position = {job: i for i, job in enumerate(jobs)}
    return [
        (position[one], position[other])
        for queue in by_arrival(q.case.problem, jobs)
        for earlier, later in pairwise(queue)
        for one in earlier
        for other in later
    ]
