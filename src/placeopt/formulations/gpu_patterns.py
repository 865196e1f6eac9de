"""
``gpu_patterns``: a linear relaxation of any size, over GPU patterns of single GPUs and classes of nodes.

It gives bounds only. A GPU pattern states how many jobs of each share a GPU holds; each class of nodes has a number of
GPUs of each pattern. What is relaxed: CPU, memory and bandwidth are summed over the nodes of a class; which GPUs make
up a worker, and where the workers of a job are; communication, spread and uplinks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from placeopt.formulations.job_groups import Starts, draft_starts
from placeopt.formulations.node_rows import Loads, add_dual_feasible_rows, add_node_rows, add_whole_node_rows
from placeopt.linear import NO_LOWER, NO_UPPER, LinearModel, ModelBuilder
from placeopt.problem import BoolArray, IntArray, Problem, State
from placeopt.problem.free_capacity import usable_gpus
from placeopt.terms.objective import value
from placeopt.terms.rules.changes import add_change_limits
from placeopt.terms.rules.queue_share import add_queue_limits

MAX_PATTERNS = 1 << 14
"""Columns of a class of nodes; where there would be more (openb needs 1,872 on idle GPUs), one row of summed shares."""
RELAXES = (
    "CPU, memory and bandwidth are summed over alike nodes",
    "which GPUs make up a worker, and where the workers of a job are",
)
CHANGES_RELAX = "running jobs that may be changed stand anywhere on alike nodes, and end in any order of submission"


@dataclass(frozen=True, eq=False)
class GpuPatterns:
    """The relaxation: the model, its start columns with their options, and the columns of other objectives."""

    model: LinearModel
    start: IntArray  # (S,) columns: jobs of a job group that run in an option
    start_milli: IntArray  # (S,) GPU share that such a job holds, at most
    start_option: IntArray  # (S,)
    start_kind: IntArray  # (S,) as in ``terms.variables``
    start_jobs: tuple[tuple[int, ...], ...]  # (S,) the jobs of the job group; starts of one job group share them
    bundle: IntArray  # (P,) columns: bundles of a start on a class of nodes
    bundle_start: IntArray  # (P,)
    bundle_class: IntArray  # (P,)
    gpu_pattern: IntArray  # (F,) columns: GPUs of a class of nodes and a free share that are pattern_columns alike
    pattern_class: IntArray  # (F,)
    pattern_share: IntArray  # (F,)
    slots: IntArray  # (F, Z) jobs of each size in a GPU pattern
    sizes: IntArray  # (Z,) descending
    loads: Loads
    fixed_milli: int
    relaxes: tuple[str, ...]


def build_gpu_patterns(state: State, deadline: float = float("inf"), *, scarce_rows: bool = True) -> GpuPatterns:
    """
    Build the relaxation of net value: its optimum bounds what any plan is worth that keeps what ``state`` holds.

    Without ``scarce_rows``, which depend on what is scarce, a cluster with one node more has the same rows.
    """
    problem, builder = state.problem, ModelBuilder(deadline)
    starts = draft_starts(state, builder.check_time)
    start = builder.add_variables(0, starts.most)
    bundle = builder.add_variables(0, starts.bundle_most)
    _add_start_rows(builder, problem, starts, start, bundle)
    option = starts.option[starts.bundle_start]
    loads = add_node_rows(builder, state, option, bundle, starts.bundle_class)
    add_whole_node_rows(builder, state, option, bundle, starts.bundle_class)
    if scarce_rows:
        add_dual_feasible_rows(builder, state, option, bundle, starts.bundle_class)
    rows = _GpuRows(builder, state, np.unique(problem.options.milli[option])[::-1])
    rows.add(bundle, starts.bundle_class, option)
    add_queue_limits(builder, state, start, starts.option)
    held = state.allocation()
    builder.set_objective(start, starts.value, "max", value(problem, held))
    gpu_pattern, pattern_class, pattern_share, slots = rows.patterns()
    return GpuPatterns(
        model=builder.build(),
        start=start,
        start_milli=starts.milli,
        start_option=starts.option,
        start_kind=starts.kind,
        start_jobs=tuple(tuple(starts.groups[c]) for c in starts.job_group.tolist()),
        bundle=bundle,
        bundle_start=starts.bundle_start,
        bundle_class=starts.bundle_class,
        gpu_pattern=gpu_pattern,
        pattern_class=pattern_class,
        pattern_share=pattern_share,
        slots=slots,
        sizes=rows.sizes,
        loads=loads,
        fixed_milli=int(problem.options.total_milli[[placement.option for placement in held if placement]].sum()),
        relaxes=(*RELAXES, *dict.fromkeys(rows.relaxed), *((CHANGES_RELAX,) if problem.changeable else ())),
    )


def gpu_milli_objective(gpu_patterns: GpuPatterns) -> LinearModel:
    """Return the same relaxation with GPU share as objective: any duals of the first bound this one too."""
    model = gpu_patterns.model
    objective = np.zeros(model.num_variables, dtype=np.int64)
    objective[gpu_patterns.start] = gpu_patterns.start_milli
    return replace(model, objective=objective, offset=gpu_patterns.fixed_milli)


def _add_start_rows(builder: ModelBuilder, problem: Problem, starts: Starts, start: IntArray, bundle: IntArray) -> None:
    """Starts <= jobs of the job group, bundles = starts x bundles of the option; limits on changes of running jobs."""
    firsts = [jobs[0] for jobs in starts.groups]
    sizes = np.array([len(jobs) for jobs in starts.groups], dtype=np.int64)
    must_run = [job in problem.running and job not in problem.may_preempt for job in firsts]
    builder.add_rows(starts.job_group, start, 1, np.where(must_run, sizes, NO_LOWER), sizes)
    bundles_of_start = (np.arange(len(start)), start, -problem.options.bundles[starts.option])
    builder.add_parts(0, 0, (starts.bundle_start, bundle, 1), bundles_of_start, count=len(start))
    if problem.changeable:
        may_end = np.array([job in problem.may_preempt for job in firsts], dtype=bool)[starts.job_group]
        add_change_limits(builder, problem, start, starts.kind, start[may_end])


class _GpuRows:
    """Rows of memory, number of jobs and slots of every share, by class of nodes; and the columns of GPU patterns."""

    def __init__(self, builder: ModelBuilder, state: State, sizes: IntArray) -> None:
        """``sizes``: the shares that jobs request, descending."""
        self._builder, self._state, self.sizes = builder, state, sizes
        self.relaxed: list[str] = []
        self._patterns: list[tuple[IntArray, IntArray, IntArray, IntArray]] = []
        self._cache: dict[tuple[int, tuple[int, ...]], IntArray | None] = {}
        """Maximal GPU patterns by share and sizes, which most classes of nodes have in common; None for too many."""
        options = state.problem.options
        asked = np.column_stack((options.milli, options.gpu_memory_mib, options.profile_number, options.gpu_type_ok))
        self._asked: list[bytes] = [row.tobytes() for row in asked]  # of each option, of a GPU
        self._usable: dict[bytes, BoolArray] = {}

    def add(self, bundle: IntArray, bundle_class: IntArray, option: IntArray) -> None:
        """Add the rows of ``bundle``, columns that count bundles of an option on a class of nodes."""
        state, problem, options = self._state, self._state.problem, self._state.problem.options
        gpus = (options.gpus * options.bundle_workers)[option]
        if options.gpu_memory_mib.any():
            self.relaxed.append("GPU memory is summed over alike nodes")
        for c in np.unique(bundle_class[gpus > 0]).tolist():
            here = np.flatnonzero((bundle_class == c) & (gpus > 0))
            usable = self._gpus_of_class(c, np.unique(option[here]))
            memory = options.gpu_memory_mib[option[here]] * gpus[here]
            if memory.any():
                free = np.maximum(state.gpu_free_memory[usable], 0)
                self._builder.add_row(bundle[here], memory, NO_LOWER, int(free.sum()))
            if problem.jobs_per_gpu is not None:
                room = int(np.maximum(problem.jobs_per_gpu - state.gpu_jobs[usable], 0).sum())
                self._builder.add_row(bundle[here], gpus[here], NO_LOWER, room)
            if problem.shares_bind and problem.jobs_per_gpu != 1:
                self._add_patterns(c, usable, bundle[here], options.milli[option[here]], gpus[here])

    def patterns(self) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """Return columns, classes of nodes and free shares of all GPU patterns, (F,) each, and slots, (F, Z)."""
        none = np.zeros(0, dtype=np.int64)
        empty = (none, none, none, np.zeros((0, len(self.sizes)), dtype=np.int64))
        column, node_class, share, slots = (np.concatenate(a) for a in zip(empty, *self._patterns, strict=True))
        return column, node_class, share, slots

    def _gpus_of_class(self, node_class: int, option: IntArray) -> IntArray:
        """GPUs on nodes of the class that at least one of the options could use, or that running jobs may stay on."""
        problem = self._state.problem
        usable = np.zeros(problem.num_gpus, dtype=bool)
        for first in {self._asked[o]: o for o in option.tolist()}.values():
            known = self._usable.get(self._asked[first])
            if known is None:
                known = self._usable[self._asked[first]] = usable_gpus(self._state, first)
            usable |= known
        usable[[gpu for job in problem.changeable for gpu in problem.running[job].gpus]] = True
        return np.flatnonzero(usable & (problem.node_class[problem.gpu_node] == node_class))

    def _add_patterns(
        self, node_class: int, usable: IntArray, column: IntArray, milli: IntArray, gpus: IntArray
    ) -> None:
        """Add a column per free share and maximal GPU pattern; where these are too many, one row of summed shares."""
        builder, sizes = self._builder, np.unique(milli)[::-1]
        free, count = np.unique(self._state.gpu_free_milli[usable], return_counts=True)
        fillings: list[IntArray] = []
        for share in free.tolist():
            builder.check_time()
            key = (share, tuple(sizes.tolist()))
            if key not in self._cache:
                self._cache[key] = maximal_gpu_patterns(share, sizes, MAX_PATTERNS)
            patterns = self._cache[key]
            if patterns is None or sum(map(len, fillings)) + len(patterns) > MAX_PATTERNS:
                builder.add_row(column, gpus * milli, NO_LOWER, int((free * count).sum()))
                self.relaxed.append("shares are summed over alike nodes")
                return
            fillings.append(patterns)
        group = np.repeat(np.arange(len(free)), [len(filling) for filling in fillings])
        pattern = builder.add_variables(0, count[group])
        builder.add_rows(group, pattern, 1, NO_LOWER, count)
        slots = np.concatenate(fillings)
        wide = np.zeros((len(slots), len(self.sizes)), dtype=np.int64)
        wide[:, np.searchsorted(-self.sizes, -sizes)] = slots
        self._patterns.append((pattern, np.full(len(slots), node_class, dtype=np.int64), free[group], wide))
        at, size = np.nonzero(slots)
        taken = (np.searchsorted(-sizes, -milli), column, -gpus)
        builder.add_parts(0, NO_UPPER, (size, pattern[at], slots[at, size]), taken, count=len(sizes))


def maximal_gpu_patterns(share: int, sizes: IntArray, most: int) -> IntArray | None:
    """
    All multisets of ``sizes`` (descending) that fit into ``share`` and to which no more can be added.

    Returns shape (GPU patterns, len(sizes)): how many of each size, descending; None if there are more than ``most``.
    They are made size by size: the smallest one fills up whatever the larger ones leave, so every beginning ends in at
    least one pattern.
    """
    left = np.array([share])
    begun: list[tuple[IntArray, IntArray]] = []  # for each size: the beginning that is continued, and how many of it
    for size in sizes.tolist()[:-1]:
        times = left // size + 1
        if int(times.sum()) > most:  # each begins at least one pattern
            return None
        before = np.repeat(np.arange(len(left)), times)
        number = (np.cumsum(times) - 1)[before] - np.arange(len(before))  # most first, then fewer
        left = left[before] - number * size
        begun.append((before, number))
    counts = np.empty((len(left), len(sizes)), dtype=np.int64)
    counts[:, -1] = left // sizes[-1]  # what is left then is less than the smallest size
    at = np.arange(len(left))
    for size_index, (before, number) in reversed([*enumerate(begun)]):
        counts[:, size_index] = number[at]
        at = before[at]
    return counts if len(counts) <= most else None
