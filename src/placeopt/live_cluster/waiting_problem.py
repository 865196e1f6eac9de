"""The problem of the waiting jobs alone, on the nodes that can still take one of them: what runs is a load on these."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from placeopt.heuristics import SCORES
from placeopt.live_cluster.cluster_record import ClusterRecord
from placeopt.live_cluster.index_remap import IndexRemap
from placeopt.model import Cluster, Instance, Policy
from placeopt.problem import BoolArray, IntArray, Problem, State
from placeopt.problem.compile import assemble, classes_among
from placeopt.problem.hardware import compile_hardware, node_domains
from placeopt.problem.problem import Classes, Jobs
from placeopt.solving.methods import Method

MOST_OPEN = 0.5
"""Part of the nodes up to which the others are left out; above, compiling the rest again takes longer than it saves."""


def needs_running_jobs(record: ClusterRecord, policy: Policy, method: Method) -> str | None:
    """
    Return why a round cannot be solved without the records of the running jobs, None if it can.

    It can where no running job may be changed and nothing asks which of them are on a GPU, only what is free.
    """
    changes = policy.changes
    if (changes.moves_max or changes.shrinks_max or changes.preemptions_max) and any(
        held.movable or held.shrinkable or held.preemptible for held in record.running.values()
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
    score = method.greedy.score
    if score in SCORES and not SCORES[score].local:
        return f"score {score!r} looks at running jobs"
    return None


def waiting_problem(
    instance: Instance,
    policy: Policy,
    class_problem: Problem,
    state: State,
    columns: tuple[tuple[str, ...], IntArray, IntArray, IntArray],
) -> Problem:
    """
    Return the problem of the jobs of ``instance``, all of which wait, beside what others hold in ``state``.

    ``columns``: Their ids, and class in ``class_problem``, arrival and priority of each. Nodes that can take none of
    them are left out: in a cluster that is nearly full, most.
    """
    ids, number, arrival, priority = columns
    used, job_class = np.unique(number, return_inverse=True)
    none = frozenset[int]()
    jobs = Jobs(ids, job_class.reshape(-1), arrival, priority, none, none, none)
    classes = classes_among(class_problem, used)
    nodes = np.flatnonzero(open_nodes(classes, state) | _one_of_each_kind(class_problem))
    if len(nodes) > MOST_OPEN * class_problem.num_nodes:
        problem = assemble(instance, policy, class_problem, classes, jobs, {})
        return replace(problem, base_load=state.base_load())
    cluster = instance.cluster
    kept = tuple(cluster.nodes[n] for n in nodes.tolist())
    part = instance.model_copy(update={"cluster": Cluster.model_construct(**{**dict(cluster), "nodes": kept})})
    hardware = compile_hardware(part, policy, class_problem.topology)
    split_domain = {level: node_domains(part, level) for level in classes.split_domain}
    classes = replace(classes, node_class=classes.node_class[nodes], split_domain=split_domain)
    problem = assemble(part, policy, hardware, classes, jobs, {})
    held = IndexRemap(class_problem, problem).state(state, ())
    return replace(problem, base_load=held.base_load())


def open_nodes(classes: Classes, state: State) -> BoolArray:
    """
    Shape (N,): nodes that may have room for a bundle of some option: all others have none.

    A node needs the least that any option asks of each resource, and, if all ask for GPUs, a GPU with the least share
    and memory that any asks for.
    """
    problem, options = state.problem, classes.options
    if not len(options):
        return np.zeros(problem.num_nodes, dtype=bool)
    free = np.maximum(state.node_free, 0)  # beyond a limit, there is still room for who asks for none of it
    room: BoolArray = problem.node_schedulable & (free >= options.demand.min(axis=0)).all(axis=1)
    if (options.gpus > 0).all():
        gpu = np.maximum(state.gpu_free_memory, 0) >= options.gpu_memory_mib.min()
        if problem.shares_bind:
            gpu &= state.gpu_free_milli >= options.milli.min()
        if problem.jobs_per_gpu is not None:
            gpu &= state.gpu_jobs < problem.jobs_per_gpu
        room &= np.bincount(problem.gpu_node[gpu], minlength=problem.num_nodes) > 0
    return room


def _one_of_each_kind(problem: Problem) -> BoolArray:
    """
    Shape (N,): one node of every class and machine type, which tell what jobs could have on idle nodes.

    Of every domain, too, that ``skew_max`` compares with, full or not.
    """
    out = np.zeros(problem.num_nodes, dtype=bool)
    compared = {one.level for spread in problem.options.spread for one in spread if one.skew_max is not None}
    kinds = [problem.node_class, problem.topology.node_machine, problem.node_schedulable.astype(np.int64)]
    kinds += [problem.split_domain[level] for level in sorted(compared)]
    out[np.unique(np.stack(kinds), axis=1, return_index=True)[1]] = True
    return out
