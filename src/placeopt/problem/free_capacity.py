"""What is free and what fits: the one statement that feasibility, heuristics and formulations share."""

from __future__ import annotations

import numpy as np

from placeopt.model import Split, Spread
from placeopt.problem.arrays import BoolArray, IntArray
from placeopt.problem.gpu_slots import with_room
from placeopt.problem.problem import Problem
from placeopt.problem.state import State


def gpus_with_room(
    problem: Problem,
    free_milli: IntArray,
    free_memory: IntArray | None,
    jobs: IntArray | None,
    *,
    milli: int,
    memory_mib: int,
    jobs_per_gpu: int | None,
) -> BoolArray:
    """
    Return which GPUs can take one more job by share, memory and number of jobs; same shape as ``free_milli``.

    ``free_milli``, ``free_memory`` (None leaves memory out) and ``jobs`` (None: no limit on them) are what is free of
    each GPU, and its holders; any shape. ``milli`` and ``memory_mib`` are the demand on each GPU, ``jobs_per_gpu`` the
    most jobs on one (None: no limit).
    """
    room: BoolArray = free_milli >= milli if problem.shares_bind else np.ones(free_milli.shape, dtype=bool)
    if jobs_per_gpu is not None and jobs is not None:
        room &= jobs < jobs_per_gpu
    if free_memory is not None:
        room &= np.maximum(free_memory, 0) >= memory_mib  # a GPU that holds too much still takes who asks for none
    return room


def waiting_per_class(state: State) -> IntArray:
    """Shape (K,): jobs of each class that are not placed in ``state``."""
    problem = state.problem
    unplaced = np.array([placement is None for placement in state.placements], dtype=bool)
    return np.bincount(problem.job_class[unplaced], minlength=problem.num_classes)


def startable_options(state: State) -> tuple[IntArray, IntArray]:
    """Return the options in which an unplaced job may start on some idle node, (Y,), and how many such jobs wait."""
    options, waiting = state.problem.options, waiting_per_class(state)
    startable = np.flatnonzero((waiting[options.job_class] > 0) & options.node_class_ok.any(axis=1))
    return startable, waiting[options.job_class[startable]]


def gpu_milli_left(state: State) -> IntArray:
    """Shape (G,): thousandths of each GPU that are left to others; none of one that may have one job and has it."""
    if state.problem.jobs_per_gpu == 1:
        return np.where(state.gpu_jobs == 0, 1000, 0)
    return np.maximum(state.gpu_free_milli, 0)


def room_decides(problem: Problem) -> bool:
    """
    Tell whether classes of nodes, node resources and GPU shares are all that decides which single bundles a node takes.

    Splits, and what only jobs on several nodes meet, are other limits.
    """
    options = problem.options
    return (
        problem.shares_bind
        and problem.jobs_per_gpu in (None, 1)
        and not problem.has_shared_limits
        and problem.policy.postpone.rule != "utility"
        and not options.gpu_memory_mib.any()
        and nodes_are_of_one_model(problem)
    )


def nodes_are_of_one_model(problem: Problem) -> bool:
    """Return whether all GPUs of each node are of one type."""
    return bool((problem.gpu_type[problem.node_gpu_start[problem.gpu_node]] == problem.gpu_type).all())


def usable_gpus(state: State, option: int) -> BoolArray:
    """Shape (G,): GPUs that can take one more job in ``option`` now."""
    options, profile = state.problem.options, state.problem.options.gpu_profile[option]
    suits = state.problem.gpu_ok(option)
    if state.problem.has_geometry:
        suits &= with_room(state.problem.type_geometry, profile, state.problem.gpu_type, state.gpu_slots)
    return suits & gpus_with_room(
        state.problem,
        state.gpu_free_milli,
        state.gpu_free_memory,
        state.gpu_jobs,
        milli=int(options.milli[option]),
        memory_mib=int(options.gpu_memory_mib[option]),
        jobs_per_gpu=state.problem.jobs_per_gpu,
    )


def times_by_resources(node_free: IntArray, need: IntArray, most: int) -> IntArray:
    """
    Shape (n,): how often ``need`` (R,) fits into each node by CPU, memory and bandwidths; may be below 0.

    ``node_free`` has shape (n, R); ``most`` is the limit, and the result where nothing is needed.
    """
    needed = need.nonzero()[0].tolist()
    if most == 1:  # the usual case, and comparing is cheaper than dividing
        once = np.ones(len(node_free), dtype=bool)
        for r in needed:
            once &= node_free[:, r] >= need[r]
        return once.astype(np.int64)
    room = np.full(len(node_free), most, dtype=np.int64)
    for r in needed:
        room = np.minimum(room, node_free[:, r] // need[r])
    return room


def jobs_that_fit(state: State, option: int) -> IntArray:
    """Shape (G,): jobs in ``option`` that can hold the GPU together, by share, number and memory."""
    problem, options = state.problem, state.problem.options
    room = np.full(problem.num_gpus, 1000, dtype=np.int64)
    if problem.shares_bind:
        room = np.minimum(room, state.gpu_free_milli // options.milli[option])
    if problem.jobs_per_gpu is not None:
        room = np.minimum(room, problem.jobs_per_gpu - state.gpu_jobs)
    if options.gpu_memory_mib[option]:
        room = np.minimum(room, state.gpu_free_memory // options.gpu_memory_mib[option])
    return np.maximum(room, 0)


def eligible_domains(problem: Problem, option: int, rule: Split | Spread) -> frozenset[int]:
    """Return the domains with which ``skew_max`` compares: those with a node that the option's job chooses."""
    if isinstance(rule, Split) or rule.skew_max is None:
        return frozenset()
    job = problem.class_member[problem.options.job_class[option]]
    domains = problem.split_domain[rule.level][problem.admission.chosen(job)]
    return frozenset(domains[domains >= 0].tolist())
