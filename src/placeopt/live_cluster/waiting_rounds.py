"""Rounds over the waiting jobs alone, to which what runs is a load: where they are possible, and on which nodes."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from placeopt.heuristics import SCORES
from placeopt.model import Policy, Running
from placeopt.problem import BoolArray, IntArray, State
from placeopt.problem.compile import options_among
from placeopt.solving.methods import Method

MOST_OPEN = 0.5
"""Part of the nodes up to which the others are left out; above, compiling the rest again takes longer than it saves."""


def needs_running_jobs(running: Iterable[Running], policy: Policy, method: Method) -> str | None:
    """
    Return why a round cannot be solved without the records of the running jobs, None if it can.

    It can where no running job may be changed and nothing asks which of them are on a GPU, only what is free.
    """
    changes, score = policy.changes, method.greedy.score
    if (changes.moves_max or changes.shrinks_max or changes.preemptions_max) and any(
        held.movable or held.shrinkable or held.preemptible for held in running
    ):
        return "running jobs may be changed"
    if policy.postpone.rule != "none":
        return f"policy.postpone.rule {policy.postpone.rule!r} looks at running jobs"
    if policy.interference.model == "curve":
        return "interference by a curve of utilisation looks at running jobs"
    if policy.fragmentation.form == "fgd":
        return "fragmentation fgd measures against the mix of all jobs"
    if "weighted_fair" in (policy.order, method.greedy.order):
        return "the order weighted_fair counts what running jobs hold"
    if score in SCORES and not SCORES[score].local:
        return f"score {score!r} looks at running jobs"
    return None


def nodes_with_room(state: State, classes: IntArray) -> IntArray | None:
    """
    Return the nodes of a round of jobs of some classes, ascending; None: all, since most have room.

    These are the nodes that may take a bundle of some option: they have the least that any option asks of each
    resource, and, if all ask for GPUs, a GPU with the least share and memory that any asks for. With them goes one node
    of every class and machine type, which tell what jobs could have on idle nodes, and of every domain that
    ``skew_max`` compares with, full or not.
    """
    problem, options = state.problem, state.problem.options
    rows = options_among(problem, classes)
    out = np.zeros(problem.num_nodes, dtype=bool)
    if len(rows):
        free = np.maximum(state.node_free, 0)  # beyond a limit, there is still room for who asks for none of it
        out = problem.node_schedulable & (free >= options.demand[rows].min(axis=0)).all(axis=1)
        if (options.gpus[rows] > 0).all():
            out &= _has_gpu(state, int(options.milli[rows].min()), int(options.gpu_memory_mib[rows].min()))
    compared = {one.level for row in rows.tolist() for one in options.spread[row] if one.skew_max is not None}
    kinds = [problem.node_class, problem.topology.node_machine, problem.node_schedulable.astype(np.int64)]
    kinds += [problem.split_domain[level] for level in sorted(compared)]
    out[np.unique(np.stack(kinds), axis=1, return_index=True)[1]] = True
    nodes = np.flatnonzero(out)
    return None if len(nodes) > MOST_OPEN * problem.num_nodes else nodes


def _has_gpu(state: State, milli: int, memory_mib: int) -> BoolArray:
    """Shape (N,): whether a node has a GPU with so much left for one more job."""
    problem = state.problem
    gpu = np.maximum(state.gpu_free_memory, 0) >= memory_mib
    if problem.shares_bind:
        gpu &= state.gpu_free_milli >= milli
    if problem.jobs_per_gpu is not None:
        gpu &= state.gpu_jobs < problem.jobs_per_gpu
    has: BoolArray = np.bincount(problem.gpu_node[gpu], minlength=problem.num_nodes) > 0
    return has
