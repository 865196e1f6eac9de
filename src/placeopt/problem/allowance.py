"""Waiting allowances (GENIE section 5): the shape a job would best run in, and how long it can wait for it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placeopt.model import Job
from placeopt.model import Option as Shape
from placeopt.problem.arrays import IntArray
from placeopt.problem.problem import Problem

THETA = 0.4
"""Weight of the nodes taken in GENIE eq. 10."""

URGENT, PRIOR = 2, 1
"""``priority`` from which a job that states no ECT counts as urgent, and as prior."""


@dataclass(frozen=True, eq=False)
class Allowances:
    """Of every job: the option chosen, -1 where none fits on idle nodes, and the waiting allowance."""

    option: IntArray  # (J,)
    slack_ms: IntArray  # (J,) may be below 0


def waiting_allowances(problem: Problem) -> Allowances:
    """
    Choose an option for every job, and say how long it can wait (GENIE algorithm 1, lines 1 to 14).

    Of the options that end by the job's ECT the one with the highest CER = rate / cost (eq. 11, 12), of all options if
    none does; ties by the lower latency, then by the order of the file. w = ECT - (latency + now) (eq. 13).

    Notes
    -----
    ECT is ``expected_completion_ms``; where it is left out, arrival + 0 for an urgent job, + the latency on one GPU for
    a prior one, + twice that for a normal one (eq. 9, with absolute times). Latency is ``latency_ms``, else
    ``run_time_ms``, else 0; rate is ``rate_milli``, else 1 / latency, else the number of GPUs. Cost is ``cost_milli``
    where it is stated, else eq. 10: GPUs over the cluster's, + 0.4 x nodes over the cluster's, which on symmetric
    clusters is the paper's N x G. A shape that does not say how many nodes it takes is given the fewest that hold it.
    """
    chosen = np.full(problem.num_jobs, -1, dtype=np.int64)
    slack = np.zeros(problem.num_jobs, dtype=np.int64)
    per_node = np.diff(problem.node_gpu_start)
    with_gpus, largest = max(int((per_node > 0).sum()), 1), max(int(per_node.max(initial=0)), 1)
    records = {job.id: job for job in problem.instance.jobs}
    now, options = problem.instance.now_ms, problem.options
    possible = frozenset(np.flatnonzero(np.any(options.node_class_ok, axis=1)).tolist())
    for j, name in enumerate(problem.job_ids):
        job = records[name]
        shapes = {shape.id: shape for shape in job.options}
        due = due_ms(job)
        best: tuple[bool, float, int] | None = None
        slack[j] = due - now
        for o in problem.options_of(j):
            if o not in possible:
                continue
            shape, workers = shapes[options.name[o]], int(options.workers[o])
            latency = latency_of(shape)
            gpus = workers * int(options.gpus[o])
            nodes = nodes_of(shape, workers, largest)
            effective = rate_of(shape, gpus) / cost_of(shape, gpus, nodes, problem.num_gpus, with_gpus)
            key = (latency + now <= due, effective, -latency)
            if best is None or key > best:
                best, chosen[j], slack[j] = key, o, due - latency - now
    return Allowances(chosen, slack)


def due_ms(job: Job) -> int:
    """Return a job's expected completion time, as stated or by its class (eq. 9); see ``waiting_allowances``."""
    if job.expected_completion_ms is not None:
        return job.expected_completion_ms
    if job.priority >= URGENT:
        return job.arrival_ms
    alone = min(job.options, key=lambda shape: (shape.workers * shape.demand.gpus, -latency_of(shape)))
    return job.arrival_ms + (1 if job.priority >= PRIOR else 2) * latency_of(alone)


def latency_of(shape: Shape) -> int:
    """Latency of an option in ms, as stated, else its run time, else 0."""
    return shape.latency_ms if shape.latency_ms is not None else shape.run_time_ms or 0


def cost_of(shape: Shape, gpus: int, nodes: int, all_gpus: int, all_nodes: int) -> float:
    """Cost of an option (eq. 10), as stated, else GPUs over the cluster's + 0.4 x nodes over the cluster's."""
    return shape.cost_milli / 1000 or gpus / max(all_gpus, 1) + THETA * nodes / max(all_nodes, 1)


def rate_of(shape: Shape, gpus: int) -> float:
    """Rate of an option, as stated, else one over its latency, else its GPUs."""
    if shape.rate_milli is not None:
        return shape.rate_milli / 1000
    latency = latency_of(shape)
    return 1000 / latency if latency else float(gpus)


def nodes_of(shape: Shape, workers: int, largest: int) -> int:
    """How many nodes of up to ``largest`` GPUs an option takes: d_node of eq. 3."""
    if shape.single_node:
        return 1
    for split in shape.splits:
        if split.level == "node":
            return split.domains
    fewest = -(-workers * shape.demand.gpus // largest)
    if shape.workers_per_node_max is not None:
        fewest = max(fewest, -(-workers // shape.workers_per_node_max))
    return max(fewest, 1)
