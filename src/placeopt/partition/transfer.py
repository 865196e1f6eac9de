"""What comes back from the process of a part, by numbers of the part, and these joined."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from placeopt.partition.splitting import Part
from placeopt.problem import Allocation, Placement, Problem

Place = tuple[int, int, tuple[int, ...], tuple[int, ...]]
"""Where a job of a part starts: the job, its option counted from its first one, nodes of its workers, and GPUs."""


def places_of(problem: Problem, allocation: Allocation) -> list[Place]:
    """Return the places of the jobs that start."""
    first = problem.class_option_start[problem.job_class].tolist()
    return [
        (job, held.option - first[job], held.nodes, held.gpus)
        for job, held in enumerate(allocation)
        if held is not None and job not in problem.running
    ]


def joined(problem: Problem, parts: Sequence[Part], places: Iterable[tuple[int, list[Place]]]) -> Allocation:
    """Return the allocation of the whole from the places of parts by number; running jobs stay as they are."""
    allocation = [problem.running.get(job) for job in range(problem.num_jobs)]
    first, start = problem.class_option_start[problem.job_class].tolist(), problem.node_gpu_start.tolist()
    for number, here in places:
        jobs, nodes = parts[number].jobs.tolist(), parts[number].nodes.tolist()
        gpus = [gpu for node in nodes for gpu in range(start[node], start[node + 1])]
        for job, option, on, held in here:
            where = tuple([nodes[node] for node in on])
            allocation[jobs[job]] = Placement(first[jobs[job]] + option, where, tuple([gpus[gpu] for gpu in held]))
    return tuple(allocation)
