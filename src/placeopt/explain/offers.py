"""The remedies of a waiting job, put together: each the least of its kind, or why there is none."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations, pairwise

import numpy as np

from placeopt.explain.question import Question
from placeopt.explain.records import BestPlace, DomainsMin, FreedGpu, GpusToFree, Preempt, Remedies, WorkersMax
from placeopt.explain.remedies import fewest_domains, first_level, most_workers
from placeopt.explain.removal import busy_gpus, cheapest_removal, least_given_up, rivals
from placeopt.explain.words import sentences
from placeopt.feasibility.free_capacity import FreeCapacity
from placeopt.feasibility.minimal_utility import Reach, reach, utility_binds, without_minima
from placeopt.problem import Move, State


def judged(q: Question) -> bool:
    """Return whether minimal utilities, its own or those of jobs that start, matter to the job."""
    return utility_binds(q.case.problem, q.case.number)


def reach_beside(q: Question, state: State) -> Reach | None:
    """Return the best place by minimal utilities beside ``state``."""
    return reach(without_minima(state), q.case.number, q.deadline)


def reach_without(q: Question, state: State, jobs: Sequence[int]) -> Reach | None:
    """Return the best place by minimal utilities beside ``state`` without these jobs."""
    free = without_minima(state)
    for job in jobs:
        free.apply(Move(job, None))
    return reach(free, q.case.number, q.deadline)


def reach_with_freed(q: Question, state: State, gpus: Sequence[int]) -> Reach | None:
    """Return the best place by minimal utilities beside ``state`` once no job holds these GPUs."""
    return reach(_with_freed(without_minima(state), gpus), q.case.number, q.deadline)


def place_of(q: Question, found: Reach) -> BestPlace:
    """Put the best place into a record."""
    problem = q.case.problem
    return BestPlace(
        utility=found.utility,
        asks=q.case.job.utility_min_thousandths or 0,
        option=problem.options.name[found.placement.option],
        nodes=tuple(problem.node_ids[node] for node in dict.fromkeys(found.placement.nodes)),
        gpus=tuple(freed(q, gpu) for gpu in sorted(found.placement.gpus)),
        falls_short=tuple(problem.job_ids[job] for job in found.hurt),
    )


def freed(q: Question, gpu: int) -> FreedGpu:
    """Name a GPU."""
    problem = q.case.problem
    return FreedGpu(node=problem.node_ids[problem.gpu_node[gpu]], gpu=int(problem.topology.gpu_index[gpu]))


def fewest_freed(q: Question, state: State, least: int) -> tuple[Reach, tuple[int, ...]] | None:
    """
    Return the fewest GPUs, at least ``least``, that let the job in at its minimal utility if they are freed; and where.

    All sets are tried, the small ones first; of options on a single node the sets of each node. A freed GPU gives back
    what it does in ``givers.Gpus``, and who holds no other on the node is nobody's neighbour there any more.

    Raises
    ------
    OutOfTime
        When the deadline passes.
    """
    free = without_minima(state)
    busy = np.flatnonzero(free.gpu_jobs > 0).tolist()
    alone = all(
        requirement.single_node or requirement.most == 1 for requirement in q.requirements
    )  # then other nodes' GPUs are of no use
    groups = [[g for g in busy if free.problem.gpu_node[g] == n] for n in dict.fromkeys(free.problem.gpu_node[busy])]
    for size in range(max(1, least), len(busy) + 1):
        for gpus in _sets(groups if alone else [busy], size):
            found = reach(_with_freed(free, gpus), q.case.number, q.deadline)
            if found is not None and found.reached:
                return found, gpus
    return None


def _sets(groups: Sequence[Sequence[int]], size: int) -> Iterator[tuple[int, ...]]:
    for group in groups:
        yield from combinations(group, size)


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


OWN = ("workers_max", "domains_min", "level")
"""Remedies on the job's side."""
REMEDIES = (*OWN, "gpus_to_free", "preempt")
UNTRIED = "not worked out where minimal utilities count"


def remedies(q: Question, state: State, room: FreeCapacity) -> Remedies:
    """
    Return every remedy of the job beside ``state``, where it does not fit.

    Those on the job's side come first: they need no solver.
    """
    none: dict[str, str] = {}
    smaller: WorkersMax | None = None
    wider: tuple[DomainsMin, ...] = ()
    level: str | None = None
    if judged(q):
        none |= dict.fromkeys(OWN, UNTRIED)
    else:
        smaller = _workers_max(q, room, none)
        wider = _domains_min(q, room, none)
        level = q.within("level", lambda: first_level(room, q.requirements, q.deadline))
        if level is None:
            none["level"] = "it does not fit into the whole cluster, however its workers lie"
    preempt = _preempt(q, state, none)
    gpus = _gpus_to_free(q, state, none)
    return _offered(q, none, workers_max=smaller, domains_min=wider, level=level, gpus_to_free=gpus, preempt=preempt)


def to_reach(q: Question, state: State) -> Remedies:
    """Return the remedies of a job that has room beside ``state``, but nowhere at its minimal utility."""
    none = dict.fromkeys(REMEDIES, UNTRIED)
    del none["gpus_to_free"]
    return _offered(q, none, gpus_to_free=_freed_to_reach(q, state, [], none))


def _offered(q: Question, none: dict[str, str], **found: object) -> Remedies:
    unanswered = {part: why for part, why in q.open.items() if part in REMEDIES}
    offered = Remedies.model_validate({**found, "none": {**none, **unanswered}})
    return offered.model_copy(update={"said": sentences(offered, q.requirements)})


def _workers_max(q: Question, room: FreeCapacity, none: dict[str, str]) -> WorkersMax | None:
    if all(requirement.fewest == 1 for requirement in q.requirements):
        none["workers_max"] = "it needs only one worker"
        return None
    found = q.within("workers_max", lambda: most_workers(room, q.requirements, q.deadline))
    if found is None:
        none["workers_max"] = "no smaller number of workers would fit"
        return None
    return WorkersMax(option=found.option, workers=found.workers, asked=found.asked)


def _domains_min(q: Question, room: FreeCapacity, none: dict[str, str]) -> tuple[DomainsMin, ...]:
    levels = list(dict.fromkeys(split.level for requirement in q.requirements for split in requirement.splits))
    found = [
        q.within("domains_min", partial(fewest_domains, room, q.requirements, level, q.deadline)) for level in levels
    ]
    if not any(found):
        none["domains_min"] = (
            f"no number of {' or '.join(levels)} domains would do" if levels else "it asks for no number of domains"
        )
    return tuple(
        DomainsMin(option=one.option, level=one.level, domains=one.domains, asked=one.asked) for one in found if one
    )


def _gpus_to_free(q: Question, state: State, none: dict[str, str]) -> GpusToFree | None:
    requirements = [requirement for requirement in q.requirements if requirement.gpus]
    if not requirements:
        none["gpus_to_free"] = "it asks for no GPU"
        return None
    givers = busy_gpus(q.case, state, requirements)
    found = q.within("gpus_to_free", lambda: least_given_up(givers, requirements, q.solve, q.deadline))
    if found is None:
        none["gpus_to_free"] = "it would not fit with all of them free either"
        return None
    gpus = [gpu for count, group in zip(found.given, givers.groups, strict=True) for gpu in group[:count]]
    if judged(q):
        if not found.proven:
            none["gpus_to_free"] = "not answered: for room alone the fewest are not proven"
            return None
        return _freed_to_reach(q, state, gpus, none)
    return GpusToFree(option=found.option, gpus=tuple(freed(q, gpu) for gpu in sorted(gpus)), proven=found.proven)


def _freed_to_reach(q: Question, state: State, gpus: Sequence[int], none: dict[str, str]) -> GpusToFree | None:
    """The fewest GPUs by room, if they do for minimal utilities too; else the fewest that do."""

    def search() -> tuple[Reach, Sequence[int]] | None:
        by_room = reach_with_freed(q, state, gpus) if gpus else None
        return (by_room, gpus) if by_room is not None and by_room.reached else fewest_freed(q, state, len(gpus))

    found = q.within("gpus_to_free", search)
    if found is None:
        none["gpus_to_free"] = "with no GPUs freed it would have its minimal utility"
        return None
    reached, which = found
    option = q.case.problem.options.name[reached.placement.option]
    return GpusToFree(option=option, gpus=tuple(freed(q, gpu) for gpu in sorted(which)), proven=True)


def _preempt(q: Question, state: State, none: dict[str, str]) -> Preempt | None:
    may = {running.job for running in q.instance.running if running.preemptible}
    ids, changes = q.case.problem.job_ids, q.plan.policy.values.changes
    jobs = [job for job in q.case.running if ids[job] in may and state.placements[job] is not None]
    if not jobs:
        none["preempt"] = "no running job is preemptible"
        return None
    held = {job: placement for job in jobs if (placement := state.placements[job]) is not None}
    values = {job: int(q.case.problem.options.value[placement.option]) for job, placement in held.items()}
    prices = [value + changes.preemption_price for value in values.values()]
    order = _last_first(q, jobs) if changes.last_submitted_first else []
    found = q.within("preempt", lambda: cheapest_removal(q, state, jobs, prices, order))
    if found is None:
        none["preempt"] = "it would not fit without all preemptible jobs either"
        return None
    givers, given = found
    if judged(q):
        leaving = [job for job, leaves in zip(jobs, given.given, strict=True) if leaves]
        reached = q.within("preempt", lambda: reach_without(q, state, leaving))
        if reached is None or not reached.reached:
            none["preempt"] = "without the cheapest that hold its room it would stay below its minimal utility"
            return None
    gone = rivals(q, givers, given, values)
    return Preempt(
        option=given.option,
        jobs=gone,
        price=sum(rival.value for rival in gone) + len(gone) * changes.preemption_price,
        allowed=len(gone) + len(q.plan.preempted) <= changes.preemptions_max,
        proven=given.proven,
    )


def _last_first(q: Question, jobs: Sequence[int]) -> list[tuple[int, int]]:
    """Pairs of positions in ``jobs``: the first may only stop if the second does, the next later of its queue."""
    record = {job.id: job for job in q.instance.jobs}
    arrivals: dict[str | None, dict[int, list[int]]] = {}
    for position, job in enumerate(jobs):
        member = record[q.case.problem.job_ids[job]]
        arrivals.setdefault(member.queue, {}).setdefault(member.arrival_ms, []).append(position)
    return [
        (one, other)
        for of_queue in arrivals.values()
        for earlier, later in pairwise(sorted(of_queue))
        for one in of_queue[earlier]
        for other in of_queue[later]
    ]
