"""Cost: GPU share that a worker of the target workload cannot use, expected (Weng et al., ATC'23, "FGD")."""

from __future__ import annotations

import numpy as np

from placeopt.linear import ModelBuilder
from placeopt.model import Policy
from placeopt.problem import RESOURCES, BoolArray, IntArray, Problem, State
from placeopt.problem.free_capacity import gpu_milli_left
from placeopt.problem.target import Target
from placeopt.terms.protocols import Cost, Expression, Form, Part
from placeopt.terms.variables import Variables

CPU = RESOURCES.index("cpu_millicores")
IMPOSSIBLE = np.iinfo(np.int64).max
"""In ``changes_if_placed``, where a bundle does not fit."""

_CHUNK = 1 << 22
"""Entries of the tables that are made at once."""


class Fgd(Cost):
    """
    ``fgd``: the sum over nodes of F_n = sum over typical workers m of p_m f_n(m), with integers for p.

    f_n(m) is all that is left of the node's GPUs where the node cannot host m: too few GPUs of a model that m takes
    with at least its share left, or too few CPU cores, or m wants no GPU at all. Else it is what is left of the GPUs
    that m cannot take. Host memory does not enter, as in the authors' simulator. Left of a GPU is what no job holds
    (not below 0 under overcommit); nothing, once one job is all that it may have.

    Nodes of mixed GPU models are our extension: a GPU of a model that m does not take counts as one with too little
    left. Where all GPUs of a node are of one model it is the published definition.
    """

    name = "fragmentation"
    unit = "weighted GPU-milli"

    def selected_by(self, policy: Policy) -> bool:
        """Return whether the policy's form is ``fgd``."""
        return policy.fragmentation.form == "fgd"

    def of(self, state: State, part: Part) -> int:
        """Sum over nodes."""
        return int(of_nodes(state, np.array(list(part.nodes), dtype=np.int64)).sum())

    def worst(self, problem: Problem) -> int:
        """Every GPU is left and useless to all typical workers; 0 where none is expected."""
        return problem.target.total * 1000 * problem.num_gpus

    def form(self, problem: Problem) -> Form:
        """Only a bound: what no typical worker could ever take where it is left."""
        del problem
        return "bound"

    def add_to(self, builder: ModelBuilder, variables: Variables) -> Expression:
        """
        Charge what is left of each GPU x the frequency of the workers that can never take it.

        Neither the GPU nor its node suits these workers now, and more jobs do not change that. A grant takes its share
        of what is left, or all of it where a GPU has one job only.
        """
        del builder
        v, problem, state = variables, variables.problem, variables.state
        gpus, there = _slots(problem, np.arange(problem.num_nodes))
        left = np.where(there, gpu_milli_left(state)[gpus], 0)
        takes = _takes(problem.target, left, problem.gpu_type[gpus], state.node_free[:, CPU])
        useless = (problem.target.total - np.einsum("m,mkw->kw", problem.target.parts, takes))[there]  # (G,)
        share = np.int64(1000) if problem.jobs_per_gpu == 1 else v.grant_milli
        return v.grant, -useless[v.cell_gpu[v.grant_cell]] * share, int((useless * left[there]).sum())


def of_nodes(state: State, nodes: IntArray, target: Target | None = None) -> IntArray:
    """
    Fragmentation F_n of the given nodes now.

    ``nodes``: Shape (k,). ``target``: The workload that is expected; the problem's, if left out.

    Returns shape (k,), in GPU-milli x ``target.total``.
    """
    target = state.problem.target if target is None else target
    gpus, there = _slots(state.problem, nodes)
    left = np.where(there, gpu_milli_left(state)[gpus], 0)
    return _fragmentation(target, left, state.problem.gpu_type[gpus], state.node_free[nodes, CPU])


def changes_if_placed(
    state: State, option: int, nodes: IntArray, usable: BoolArray, target: Target | None = None
) -> IntArray:
    """
    Change of F_n if one more bundle of ``option`` were put on each node, by its first GPU.

    - ``nodes``: Shape (k,).
    - ``usable``: Shape (k, width), width the most GPUs of any node: the slots whose GPU could take one more job in the
      option. Slot s of node n is GPU ``node_gpu_start[n] + s``.
    - ``target``: The workload that is expected; the problem's, if left out.

    Returns shape (k, width): with slot s as the bundle's first GPU and the next usable ones as its others;
    ``IMPOSSIBLE`` where s is not usable or too few follow. A bundle without GPUs has its change in all columns. Whether
    CPU and the other resources of the node suffice is the caller's question.
    """
    problem, options = state.problem, state.problem.options
    target = problem.target if target is None else target
    workers = int(options.bundle_workers[option])
    need, cpu = workers * int(options.gpus[option]), workers * int(options.demand[option, CPU])
    gpus, there = _slots(problem, nodes)
    left, types = np.where(there, gpu_milli_left(state)[gpus], 0), problem.gpu_type[gpus]
    before = of_nodes(state, nodes, target)
    width = left.shape[1]
    if not need:
        after = _fragmentation(target, left, types, state.node_free[nodes, CPU] - cpu)
        return np.repeat((after - before)[:, None], width, axis=1)
    rank = np.cumsum(usable, axis=1)  # the usable slots of a node counted from 1
    first = rank[:, :, None]
    taken = usable[:, None, :] & (rank[:, None, :] >= first) & (rank[:, None, :] < first + need)  # (k, first, slot)
    at, slot = np.nonzero(usable & (taken.sum(axis=2) == need))
    out = np.full(left.shape, IMPOSSIBLE, dtype=np.int64)
    if problem.jobs_per_gpu == 1:
        rest = np.where(taken[at, slot], 0, left[at])
    else:
        free = np.where(there, state.gpu_free_milli[gpus], 0)[at]
        rest = np.where(taken[at, slot], np.maximum(free - options.milli[option], 0), left[at])
    out[at, slot] = _fragmentation(target, rest, types[at], state.node_free[nodes[at], CPU] - cpu) - before[at]
    return out


def _slots(problem: Problem, nodes: IntArray) -> tuple[IntArray, BoolArray]:
    """Shape (k, width) each: the GPU of every slot (any GPU where there is none), and whether there is one."""
    start = problem.node_gpu_start
    slots = start[nodes][:, None] + np.arange(int(np.diff(start).max(initial=0)))[None, :]
    there = slots < start[nodes + 1][:, None]
    return np.where(there, slots, 0), there


def _fragmentation(target: Target, left: IntArray, types: IntArray, cpu: IntArray) -> IntArray:
    """F_n of nodes with GPUs of ``types``, of which ``left`` is left, shape (k, width) each, and CPU left, (k,)."""
    out = np.zeros(len(left), dtype=np.int64)
    chunk = max(1, _CHUNK // max(1, len(target) * left.shape[1]))
    for at in range(0, len(left), chunk):
        part = slice(at, at + chunk)
        takes = _takes(target, left[part], types[part], cpu[part])
        used = np.einsum("mkw,kw->mk", takes, left[part], dtype=np.int64)
        out[part] = target.total * left[part].sum(axis=1) - target.parts @ used
    return out


def _takes(target: Target, left: IntArray, types: IntArray, cpu: IntArray) -> BoolArray:
    """Shape (M, k, width): whether a typical worker could take of a GPU, and its node host it; as `_fragmentation`."""
    usable = target.type_ok[:, types] & (left >= np.maximum(target.milli, 1)[:, None, None])
    hosts = (usable.sum(axis=2) >= target.gpus[:, None]) & (np.maximum(cpu, 0) >= target.cpu[:, None])
    takes: BoolArray = usable & (hosts & (target.gpus > 0)[:, None])[:, :, None]
    return takes
