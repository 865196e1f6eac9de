"""The orders that a policy can ask for, and the waiting allowances that ``swaf`` sorts by (GENIE section 5)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from placeopt.model import Job
from placeopt.model import Option as Shape
from placeopt.problem import IntArray, Problem

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
    Choose an option for every job, and its waiting allowance (GENIE algorithm 1, lines 1 to 14).

    Of the options that end by the job's ECT the one with the highest CER = rate / cost (eq. 11, 12), of all options if
    none does; ties by the lower latency, then by the order of the file. w = ECT - (latency + now) (eq. 13).

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


def order_jobs(problem: Problem, order: str) -> IntArray:
    """Return the waiting jobs in the order in which a heuristic should consider them."""
    waiting = np.ones(problem.num_jobs, dtype=bool)
    waiting[list(problem.running)] = False
    jobs = np.flatnonzero(waiting)
    return jobs[ORDERS[order](problem, jobs)]


def fcfs(problem: Problem, jobs: IntArray) -> IntArray:
    """First come, first served; ties by the order of the file."""
    return np.argsort(problem.job_arrival_ms[jobs], kind="stable")


def priority(problem: Problem, jobs: IntArray) -> IntArray:
    """Highest priority first, then first come, first served."""
    return np.lexsort((problem.job_arrival_ms[jobs], -problem.job_priority[jobs]))


def value_density(problem: Problem, jobs: IntArray) -> IntArray:
    """
    Most value per GPU share first; jobs without GPUs first of all.

    Of equal density: those that the fewest GPUs may
    serve first, then most whole GPUs, then shares of a GPU; within a size the classes take turns, each in proportion
    to its number of jobs.

    Jobs bound to scarce GPUs find them taken otherwise (openb-gpuspec33: 96.5 % placed instead of 80.6 %). Large jobs
    need the room that small ones would break up. Turns keep the mix of CPU and memory even: sorting the classes one
    after the other places 2.8 % less of openb-default.
    """
    options, classes = problem.options, problem.num_classes
    value, milli = problem.most_of_class(options.value), problem.most_of_class(options.total_milli)
    density = np.where(milli > 0, value / np.maximum(milli, 1), np.inf)
    whole = np.where(milli >= 1000, milli, 0)
    k = problem.job_class[jobs]
    by_class = np.lexsort((problem.job_arrival_ms[jobs], k))
    first = np.searchsorted(k[by_class], np.arange(classes))
    turn = np.empty(len(jobs))
    turn[by_class] = (np.arange(len(jobs)) - first[k[by_class]] + 0.5) / np.bincount(k, minlength=classes)[k[by_class]]
    return np.lexsort((k, turn, -whole[k], _eligible_gpus(problem)[k], -density[k]))


def weighted_fair(problem: Problem, jobs: IntArray) -> IntArray:
    """
    Each queue in proportion to its ``weight``: next comes the job with which a queue holds least GPU share per weight.

    What a queue's running jobs hold, and its stated usage, count from the start; its waiting jobs come in order of
    arrival, each with the most that any of its options asks for (self-clocked fair queuing of a backlog that is all
    there, after Demers, Keshav and Shenker 1989). Jobs of no queue are one queue of weight 1. Ties: first
    come, first served.
    """
    options, queues = problem.options, problem.policy.queues
    most = problem.most_of_class(options.total_milli)
    of_job = problem.class_queue[problem.job_class]  # -1, the last entry below, is no queue
    weight = np.array([*(queue.weight for queue in queues), 1], dtype=np.int64)
    held = np.array([*(queue.usage_gpu_milli for queue in queues), 0], dtype=np.int64)
    for job, placement in problem.running.items():
        held[of_job[job]] += options.total_milli[placement.option]
    arrival = problem.job_arrival_ms[jobs]
    finish = np.zeros(len(jobs))
    for queue in range(len(weight)):
        mine = np.flatnonzero(of_job[jobs] % len(weight) == queue)
        mine = mine[np.argsort(arrival[mine], kind="stable")]
        finish[mine] = (held[queue] + np.cumsum(most[problem.job_class[jobs[mine]]])) / weight[queue]
    return np.lexsort((arrival, finish))


def swaf(problem: Problem, jobs: IntArray) -> IntArray:
    """Shortest waiting allowance first (GENIE algorithm 1, line 15); ties: first come, first served."""
    return np.lexsort((problem.job_arrival_ms[jobs], waiting_allowances(problem).slack_ms[jobs]))


def _eligible_gpus(problem: Problem) -> IntArray:
    """Shape (K,): GPUs that may serve a job of each class in one of its options, were they idle; most over options."""
    options, classes = problem.options, problem.options.node_class_ok.shape[1]
    counts = np.zeros((classes, len(problem.type_model)), dtype=np.int64)
    np.add.at(counts, (problem.node_class[problem.gpu_node], problem.gpu_type), 1)
    per_option = ((options.node_class_ok.astype(np.int64) @ counts) * options.gpu_type_ok).sum(axis=1)
    return problem.most_of_class(np.where(options.gpus > 0, per_option, 0))


ORDERS: dict[str, Callable[[Problem, IntArray], IntArray]] = {
    "fcfs": fcfs,
    "priority": priority,
    "swaf": swaf,
    "value_density": value_density,
    "weighted_fair": weighted_fair,
}
