"""What keeps a job from its minimal utility, and the fewest GPUs that would have to be freed for it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from placeopt.explain.question import Question
from placeopt.explain.records import BestPlace, FreedGpu
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
        option=problem.arrays.name[found.placement.option],
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
        each = problem.arrays.demand[held.option] // max(1, int(problem.arrays.gpus[held.option]))
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
