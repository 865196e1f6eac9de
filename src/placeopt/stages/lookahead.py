"""Stage 0, where the policy asks for it: jobs that had better wait leave the round, and GPUs are kept for them."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np

from placeopt.heuristics.lookahead import Wait, look_ahead
from placeopt.problem import Problem, compile_problem
from placeopt.queueing import order_jobs
from placeopt.stages.round import Round
from placeopt.terms.run_time import longest_run_ms

SHARE_OF_TIME = 0.3


def run_lookahead(round_: Round, score: str, order: str) -> None:
    """
    Narrow the round to what may start now, for all later stages alike.

    A job that waits may go nowhere. A GPU kept for it is closed to options that might not end in time: alone and as far
    apart as on a machine. Later stages need no knowledge of it. What they prove is of plans that let these jobs wait;
    the plan's own bound is of the whole round, so it is hardly ever called optimal.
    """
    if round_.problem.policy.postpone.rule != "lookahead":
        return
    started, limits = time.monotonic(), round_.limits
    deadline = float("inf") if limits.deterministic else started + SHARE_OF_TIME * limits.left_s
    jobs = order_jobs(round_.problem, order)
    waits = look_ahead(round_.problem, jobs, score, deadline=deadline, cancelled=round_.cancelled)
    if waits:
        round_.narrow(hold_back(round_.problem, waits), waits)
    detail = "nobody ends earlier by waiting"
    if waits:
        who = "1 job ends" if len(waits) == 1 else f"{len(waits)} jobs end"
        detail = f"{who} earlier by waiting; stages after this one are about plans that let them"
    round_.record("lookahead", "improved" if waits else "kept", started, detail)


def hold_back(problem: Problem, waits: dict[int, Wait]) -> Problem:
    """Return the round in which jobs that wait may go nowhere, and others not onto their GPUs for too long."""
    records = tuple(
        job.model_copy(update={"nodes_allowed": ()}) if j in waits else job
        for j, job in enumerate(problem.instance.jobs)
    )
    narrowed = compile_problem(problem.instance.model_copy(update={"jobs": records}), problem.policy)
    needed: dict[int, int] = {}
    for wait in waits.values():
        for gpu in wait.placement.gpus:
            needed[gpu] = min(wait.start_ms, needed.get(gpu, wait.start_ms))
    return _keep_free(narrowed, needed)


def _keep_free(problem: Problem, needed: dict[int, int]) -> Problem:
    """
    Give GPUs that are needed at a time a type of their own, which only options allow that end before.

    Their nodes get classes of their own: nodes of a class have GPUs of the same types.
    """
    options, gpu_type = problem.options, problem.gpu_type.copy()
    _, firsts = np.unique(problem.job_class, return_index=True)
    ends = []
    for o, k in enumerate(options.job_class.tolist()):
        length = longest_run_ms(problem, int(firsts[k]), o)
        ends.append(np.iinfo(np.int64).max if length is None else problem.instance.now_ms + length)
    end = np.array(ends, dtype=np.int64)
    types: dict[tuple[int, int], int] = {}
    columns, models, memory = [options.gpu_type_ok], list(problem.type_model), problem.type_memory_mib.tolist()
    for gpu, start in needed.items():
        former = int(problem.gpu_type[gpu])
        if (former, start) not in types:
            types[former, start] = len(models)
            models.append(problem.type_model[former])
            memory.append(int(problem.type_memory_mib[former]))
            columns.append((options.gpu_type_ok[:, former] & (end <= start))[:, None])
        gpu_type[gpu] = types[former, start]
    nodes = np.unique(problem.gpu_node[list(needed)])
    node_class = problem.node_class.copy()
    node_class[nodes] = options.node_class_ok.shape[1] + np.arange(len(nodes))
    node_class_ok = np.concatenate([options.node_class_ok, options.node_class_ok[:, problem.node_class[nodes]]], axis=1)
    present, node_class = np.unique(node_class, return_inverse=True)  # a class may have lost its last node
    node_class_ok = node_class_ok[:, present]
    return replace(
        problem,
        node_class=node_class,
        gpu_type=gpu_type,
        type_model=tuple(models),
        type_memory_mib=np.array(memory, dtype=np.int64),
        options=replace(options, gpu_type_ok=np.concatenate(columns, axis=1), node_class_ok=node_class_ok),
    )
