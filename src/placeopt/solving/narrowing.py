"""A round narrowed to what look-ahead leaves open: jobs that wait have no node, others no place that blocks one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from placeopt.heuristics.lookahead import LookaheadDecision
from placeopt.problem import Placement, Problem, compile_problem
from placeopt.terms.costs.run_time import longest_run_ms

FOREVER = np.iinfo(np.int64).max


def hold_back(problem: Problem, ahead: LookaheadDecision) -> Problem:
    """Return the round in which jobs that wait by look-ahead have no node, others only places that block none."""
    names = problem.node_ids
    pinned = {job: ahead.starts[job] for job in ahead.scheduled if ahead.starts[job].gpus}
    records = list(problem.instance.jobs)
    for job in ahead.waits:
        records[job] = records[job].model_copy(update={"nodes_allowed": ()})
    for job, placement in pinned.items():
        nodes = tuple(names[node] for node in dict.fromkeys(placement.nodes))
        records[job] = records[job].model_copy(update={"nodes_allowed": nodes})
    instance = problem.given.model_copy(update={"jobs": tuple(records)})
    narrowed = compile_problem(instance, problem.policy, problem)
    return _close_gpus(narrowed, ahead.needed, _pinned_gpus(narrowed, pinned))


def renumbered(problem: Problem, job: int, placement: Placement, former: Problem) -> Placement:
    """Return the placement with the option's number in another compilation of the same jobs."""
    options, o = former.options, placement.option
    same = (options.name[o], int(options.workers[o]))
    number = next(p for p in problem.options_of(job) if (problem.options.name[p], problem.options.workers[p]) == same)
    return replace(placement, option=number)


def _pinned_gpus(problem: Problem, pinned: dict[int, Placement]) -> dict[int, frozenset[int]]:
    """Return class -> GPUs of its jobs, for classes all of whose jobs are pinned to a place."""
    count = np.bincount(problem.job_class)
    gpus: dict[int, set[int]] = {}
    for job, placement in pinned.items():
        k = int(problem.job_class[job])
        gpus.setdefault(k, set()).update(placement.gpus)
        count[k] -= 1
    return {k: frozenset(held) for k, held in gpus.items() if not count[k]}


def _close_gpus(problem: Problem, needed: dict[int, int], places: dict[int, frozenset[int]]) -> Problem:
    """
    Give GPUs that are needed at a time, or that jobs are pinned to, types of their own, which few options allow.

    ``needed`` is GPU -> when it is needed, ``places`` class -> GPUs. Their nodes get classes of their own: nodes of a
    class have GPUs of the same types.
    """
    options, gpu_type = problem.options, problem.gpu_type.copy()
    classes_of: dict[int, list[int]] = {}
    for k, gpus in places.items():
        for gpu in gpus:
            classes_of.setdefault(gpu, []).append(k)
    touched = sorted({*needed, *classes_of})
    if not touched:
        return problem
    bound = np.isin(options.job_class, list(places))
    may = options.gpu_type_ok & ~bound[:, None]
    end = _latest_ends(problem) if needed else np.zeros(len(options), dtype=np.int64)
    types: dict[tuple[int, int, tuple[int, ...]], int] = {}
    columns, models, memory = [may], list(problem.type_model), problem.type_memory_mib.tolist()
    same_model = list(range(len(models)))  # per type, the one of before that it was
    for gpu in touched:
        former, start, classes = int(problem.gpu_type[gpu]), needed.get(gpu, FOREVER), tuple(classes_of.get(gpu, ()))
        if (former, start, classes) not in types:
            types[former, start, classes] = len(models)
            models.append(problem.type_model[former])
            same_model.append(former)
            memory.append(int(problem.type_memory_mib[former]))
            own = np.isin(options.job_class, classes)
            columns.append((options.gpu_type_ok[:, former] & np.where(bound, own, end <= start))[:, None])
        gpu_type[gpu] = types[former, start, classes]
    nodes = np.unique(problem.gpu_node[touched])
    node_class = problem.node_class.copy()
    node_class[nodes] = options.node_class_ok.shape[1] + np.arange(len(nodes))
    node_class_ok = np.concatenate([options.node_class_ok, options.node_class_ok[:, problem.node_class[nodes]]], axis=1)
    present, node_class = np.unique(node_class, return_inverse=True)  # a class may have lost its last node
    return replace(
        problem,
        node_class=node_class,
        gpu_type=gpu_type,
        type_model=tuple(models),
        type_memory_mib=np.array(memory, dtype=np.int64),
        type_lost=problem.type_lost[same_model],
        # The target workload does not compete for places: a closed GPU serves it as before.
        target=replace(problem.target, type_ok=problem.target.type_ok[:, same_model]),
        options=replace(options, gpu_type_ok=np.concatenate(columns, axis=1), node_class_ok=node_class_ok[:, present]),
    )


def _latest_ends(problem: Problem) -> np.ndarray:
    """Shape (options,): when a job in the option ends at the latest if it starts now, undisturbed on a machine."""
    _, firsts = np.unique(problem.job_class, return_index=True)
    ends = []
    for o, k in enumerate(problem.options.job_class.tolist()):
        length = longest_run_ms(problem, int(firsts[k]), o)
        ends.append(FOREVER if length is None else problem.instance.now_ms + length)
    return np.array(ends, dtype=np.int64)
