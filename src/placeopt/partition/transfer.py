"""What comes back from the process of a part: places as arrays, by numbers of the part, and these joined."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np

from placeopt.partition.splitting import Part
from placeopt.problem import Allocation, IntArray, Placement, Problem


@dataclass(frozen=True, eq=False)
class Places:
    """Where P waiting jobs of a part were placed; everything by numbers of the part's problem."""

    job: IntArray  # (P,)
    way: IntArray  # (P,) option, counted from the first one of the job
    workers: IntArray  # (P,)
    gpus: IntArray  # (P,) GPUs of all workers
    node: IntArray  # (workers,) job after job, in rank order
    gpu_node: IntArray  # (GPUs,) node of each GPU, job after job, worker after worker
    gpu: IntArray  # (GPUs,) counted from the first one of its node


NO_PLACES = Places(*[np.zeros(0, dtype=np.int64)] * 7)


def places_of(problem: Problem, allocation: Allocation) -> Places:
    """Return the places of the jobs that start."""
    placed = [(j, p) for j, p in enumerate(allocation) if p is not None and j not in problem.running]
    job = np.array([j for j, _ in placed], dtype=np.int64)
    option = np.array([p.option for _, p in placed], dtype=np.int64)
    gpu = _chained(p.gpus for _, p in placed)
    gpu_node = problem.gpu_node[gpu]
    return Places(
        job=job,
        way=option - problem.class_option_start[problem.job_class[job]],
        workers=np.array([len(p.nodes) for _, p in placed], dtype=np.int64),
        gpus=np.array([len(p.gpus) for _, p in placed], dtype=np.int64),
        node=_chained(p.nodes for _, p in placed),
        gpu_node=gpu_node,
        gpu=gpu - problem.node_gpu_start[gpu_node],
    )


def _chained(numbers: Iterable[Sequence[int]]) -> IntArray:
    return np.fromiter(chain.from_iterable(numbers), dtype=np.int64)


def joined(problem: Problem, parts: Sequence[Part], places: Iterable[tuple[int, Places]]) -> Allocation:
    """Return the allocation of the whole from the places of parts by number; running jobs stay as they are."""
    allocation: list[Placement | None] = [None] * problem.num_jobs
    for job, placement in problem.running.items():
        allocation[job] = placement
    for number, here in places:
        jobs, nodes = parts[number].jobs[here.job], parts[number].nodes
        option = problem.class_option_start[problem.job_class[jobs]] + here.way
        node = nodes[here.node].tolist()
        gpu = (problem.node_gpu_start[nodes[here.gpu_node]] + here.gpu).tolist()
        ends = zip(np.cumsum(here.workers).tolist(), np.cumsum(here.gpus).tolist(), strict=True)
        first_node = first_gpu = 0
        for job, row, (last_node, last_gpu) in zip(jobs.tolist(), option.tolist(), ends, strict=True):
            allocation[job] = Placement(row, tuple(node[first_node:last_node]), tuple(gpu[first_gpu:last_gpu]))
            first_node, first_gpu = last_node, last_gpu
    return tuple(allocation)
