"""
``gpu_patterns``: a linear relaxation of any size, over GPU patterns of single GPUs and classes of nodes.

It gives bounds only. A GPU pattern states how many jobs of each share a GPU holds; each class of nodes has a number of
GPUs of each pattern. What is relaxed: CPU, memory and bandwidth are summed over the nodes of a class; which GPUs make
up a worker, and where the workers of a job are; communication, spread and uplinks.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from placeopt.formulations.class_loads import Loads, add_node_rows
from placeopt.formulations.job_groups import draft_starts
from placeopt.formulations.maximal_gpu_patterns import maximal_gpu_patterns
from placeopt.linear import NO_LOWER, NO_UPPER, LinearModel, ModelBuilder
from placeopt.problem import IntArray, Problem, State
from placeopt.problem.changes import change_limits
from placeopt.problem.free_capacity import usable_gpus
from placeopt.terms.objective import value
from placeopt.terms.queue_ceilings import queue_ceilings
from placeopt.terms.rules.queue_share import option_use
from placeopt.terms.variables import MOVE, SHRINK

MAX_PATTERNS = 20_000
"""Columns of a class of nodes; where there would be more (openb needs 1,872 on idle GPUs), one row of summed shares."""
RELAXES = (
    "CPU, memory and bandwidth are summed over alike nodes",
    "which GPUs make up a worker, and where the workers of a job are",
)
CHANGES_RELAX = "running jobs that may be changed stand anywhere on alike nodes, and end in any order of submission"


PatternCache = dict[tuple[int, tuple[int, ...]], IntArray | None]
"""Maximal GPU patterns by share and sizes; None where there are too many."""


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


def build_gpu_patterns(state: State, deadline: float = float("inf")) -> GpuPatterns:
    """
    Build the relaxation of net value: its optimum bounds what any plan is worth that keeps what ``state`` holds.

    Raises
    ------
    OutOfTime
        If ``deadline``, of ``time.monotonic()``, passes meanwhile.
    """
    problem = state.problem
    builder = ModelBuilder(deadline)
    starts, bundle_columns = _add_jobs(builder, state)
    loads = add_node_rows(
        builder, state, starts.option[bundle_columns.start], bundle_columns.column, bundle_columns.node_class
    )
    pattern_columns = _PatternColumns(np.unique(problem.options.milli[starts.option[bundle_columns.start]])[::-1])
    relaxes = RELAXES + _add_gpu_rows(builder, state, starts.option, bundle_columns, pattern_columns)
    _add_queue_rows(builder, state, starts.column, starts.option)
    held = state.allocation()
    builder.set_objective(starts.column, starts.value, "max", value(problem, held))
    if problem.changeable:
        relaxes += (CHANGES_RELAX,)
    return GpuPatterns(
        model=builder.build(),
        start=starts.column,
        start_milli=starts.milli,
        start_option=starts.option,
        start_kind=starts.kind,
        start_jobs=starts.jobs,
        bundle=bundle_columns.column,
        bundle_start=bundle_columns.start,
        bundle_class=bundle_columns.node_class,
        gpu_pattern=_joined(pattern_columns.column),
        pattern_class=_joined(pattern_columns.node_class),
        pattern_share=_joined(pattern_columns.share),
        slots=np.concatenate([np.zeros((0, len(pattern_columns.sizes)), dtype=np.int64), *pattern_columns.slots]),
        sizes=pattern_columns.sizes,
        loads=loads,
        fixed_milli=int(problem.options.total_milli[[placement.option for placement in held if placement]].sum()),
        relaxes=relaxes,
    )


def gpu_milli_objective(gpu_patterns: GpuPatterns) -> LinearModel:
    """Return the same relaxation with GPU share as objective: any duals of the first bound this one too."""
    model = gpu_patterns.model
    objective = np.zeros(model.num_variables, dtype=np.int64)
    objective[gpu_patterns.start] = gpu_patterns.start_milli
    return replace(model, objective=objective, offset=gpu_patterns.fixed_milli)


@dataclass(frozen=True, eq=False)
class _BundleColumns:
    """Columns that count bundles: (P,) each, by option (position in ``start``) and node class."""

    column: IntArray
    start: IntArray
    node_class: IntArray


@dataclass(frozen=True, eq=False)
class _StartColumns:
    """Start columns: (S,) each, what the jobs of a job group do."""

    column: IntArray
    option: IntArray
    kind: IntArray
    value: IntArray
    milli: IntArray
    jobs: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, eq=False)
class _PatternColumns:
    """Columns of GPU patterns, a piece for each class of nodes, over the ``sizes`` of all classes, descending."""

    sizes: IntArray
    column: list[IntArray] = field(default_factory=list)
    node_class: list[IntArray] = field(default_factory=list)
    share: list[IntArray] = field(default_factory=list)
    slots: list[IntArray] = field(default_factory=list)

    def add(self, column: IntArray, node_class: int, share: IntArray, sizes: IntArray, slots: IntArray) -> None:
        """Note columns of a class of nodes; ``slots`` count only its own ``sizes``."""
        wide = np.zeros((len(column), len(self.sizes)), dtype=np.int64)
        wide[:, np.searchsorted(-self.sizes, -sizes)] = slots
        self.column.append(column)
        self.node_class.append(np.full(len(column), node_class, dtype=np.int64))
        self.share.append(share)
        self.slots.append(wide)


def _joined(pieces: list[IntArray]) -> IntArray:
    return np.concatenate([np.zeros(0, dtype=np.int64), *pieces])


def _add_jobs(builder: ModelBuilder, state: State) -> tuple[_StartColumns, _BundleColumns]:
    """
    Starts, bundles per node class, and: starts <= jobs of the job group, bundles = starts x bundles of the option.
    """
    problem, options = state.problem, state.problem.options
    draft = draft_starts(state)
    job_groups = draft.job_groups
    starts = _StartColumns(
        column=builder.add_variables(0, _ints(draft.most), count=len(draft.most)),
        option=_ints(draft.option),
        kind=_ints(draft.kind),
        value=_ints(draft.value),
        milli=_ints(draft.milli),
        jobs=tuple(tuple(job_groups[c].jobs) for c in draft.job_group),
    )
    column = builder.add_variables(0, _ints(draft.placed_most), count=len(draft.placed_most))
    bundle_columns = _BundleColumns(column, _ints(draft.placed_start), _ints(draft.placed_class))
    ones, sizes = np.ones(len(starts.column), dtype=np.int64), _ints([len(job_group.jobs) for job_group in job_groups])
    least = np.where([job_group.must_run for job_group in job_groups], sizes, NO_LOWER)
    builder.add_rows(_ints(draft.job_group), starts.column, ones, least.astype(np.int64), sizes)
    zero = np.zeros(len(starts.column), dtype=np.int64)
    builder.add_rows(
        np.concatenate([bundle_columns.start, np.arange(len(starts.column))]),
        np.concatenate([column, starts.column]),
        np.concatenate([np.ones(len(column), dtype=np.int64), -options.bundles[starts.option]]),
        zero,
        zero,
    )
    if problem.changeable:
        may_end = np.array([job_groups[c].jobs[0] in problem.may_preempt for c in draft.job_group], dtype=bool)
        _add_limits(builder, problem, starts, may_end)
    return starts, bundle_columns


def _add_limits(builder: ModelBuilder, problem: Problem, starts: _StartColumns, may_end: np.ndarray) -> None:
    """At most so many jobs moved, shrunk and preempted; ``may_end`` are the starts of those that may be preempted."""
    most = change_limits(problem)
    for kind, limit in ((MOVE, most["moved"]), (SHRINK, most["shrunk"])):
        columns = starts.column[starts.kind == kind]
        builder.add_row(columns, np.ones(len(columns), dtype=np.int64), NO_LOWER, limit)
    columns = starts.column[may_end]
    least = len(problem.may_preempt) - most["preempted"]
    builder.add_row(columns, np.ones(len(columns), dtype=np.int64), least, NO_UPPER)


def _ints(values: list[int]) -> IntArray:
    return np.array(values, dtype=np.int64)


def _add_gpu_rows(
    builder: ModelBuilder,
    state: State,
    start_option: IntArray,
    bundle_columns: _BundleColumns,
    pattern_columns: _PatternColumns,
) -> tuple[str, ...]:
    """Slots of every share, by class of nodes: those that the GPU patterns offer cover those that jobs take."""
    problem, options = state.problem, state.problem.options
    option = start_option[bundle_columns.start]
    gpus = (options.gpus * options.bundle_workers)[option]
    relaxed: list[str] = []
    cached: PatternCache = {}
    if options.gpu_memory_mib.any():
        relaxed.append("GPU memory is summed over alike nodes")
    for c in np.unique(bundle_columns.node_class[gpus > 0]):
        selected = np.flatnonzero((bundle_columns.node_class == c) & (gpus > 0))
        usable = _gpus_of_class(state, int(c), np.unique(option[selected]))
        _add_memory_row(builder, state, usable, bundle_columns.column[selected], option[selected], gpus[selected])
        if problem.jobs_per_gpu is not None:
            room = int(np.maximum(problem.jobs_per_gpu - state.gpu_jobs[usable], 0).sum())
            builder.add_row(bundle_columns.column[selected], gpus[selected], NO_LOWER, room)
        if not problem.shares_bind or problem.jobs_per_gpu == 1:
            continue
        if not _add_patterns(
            builder,
            state,
            usable,
            bundle_columns.column[selected],
            option[selected],
            gpus[selected],
            cached,
            int(c),
            pattern_columns,
        ):
            relaxed.append("shares are summed over alike nodes")
    return tuple(dict.fromkeys(relaxed))


def _gpus_of_class(state: State, node_class: int, option: IntArray) -> IntArray:
    """GPUs on nodes of the class that at least one of the options could use, or that running jobs may stay on."""
    problem = state.problem
    usable = np.zeros(problem.num_gpus, dtype=bool)
    for o in option:
        usable |= usable_gpus(state, int(o))
    usable[[gpu for job in problem.changeable for gpu in problem.running[job].gpus]] = True
    return np.flatnonzero(usable & (state.problem.node_class[state.problem.gpu_node] == node_class))


def _add_memory_row(
    builder: ModelBuilder, state: State, usable: IntArray, column: IntArray, option: IntArray, gpus: IntArray
) -> None:
    need = state.problem.options.gpu_memory_mib[option] * gpus
    if need.any():
        builder.add_row(column, need, NO_LOWER, int(np.maximum(state.gpu_free_memory[usable], 0).sum()))


def _add_patterns(
    builder: ModelBuilder,
    state: State,
    usable: IntArray,
    column: IntArray,
    option: IntArray,
    gpus: IntArray,
    cached: PatternCache,
    node_class: int,
    pattern_columns: _PatternColumns,
) -> bool:
    """
    Add a column per free share and maximal GPU pattern; where these are too many, one row of summed shares.

    ``cached`` holds what was enumerated for other classes of nodes, most of which ask for the same.
    """
    milli = state.problem.options.milli[option]
    sizes = np.unique(milli)[::-1]
    free, count = np.unique(state.gpu_free_milli[usable], return_counts=True)
    gpu_patterns: list[IntArray] = []
    for share in free:
        builder.check_time()
        key = (int(share), tuple(sizes.tolist()))
        if key not in cached:
            cached[key] = maximal_gpu_patterns(int(share), sizes, MAX_PATTERNS)
        found = cached[key]
        if found is None or sum(len(f) for f in gpu_patterns) + len(found) > MAX_PATTERNS:
            builder.add_row(column, gpus * milli, NO_LOWER, int((free * count).sum()))
            return False
        gpu_patterns.append(found)
    gpu_pattern = builder.add_variables(
        0, np.repeat(count, [len(f) for f in gpu_patterns]), count=sum(len(f) for f in gpu_patterns)
    )
    group = np.repeat(np.arange(len(free)), [len(f) for f in gpu_patterns])
    builder.add_rows(
        group,
        gpu_pattern,
        np.ones(len(gpu_pattern), dtype=np.int64),
        np.full(len(free), NO_LOWER, dtype=np.int64),
        count,
    )
    slots = np.concatenate(gpu_patterns)  # (GPU patterns, sizes)
    pattern_columns.add(gpu_pattern, node_class, free[group], sizes, slots)
    at, size = np.nonzero(slots)
    builder.add_rows(
        np.concatenate([size, np.searchsorted(-sizes, -milli)]),
        np.concatenate([gpu_pattern[at], column]),
        np.concatenate([slots[at, size], -gpus]),
        np.zeros(len(sizes), dtype=np.int64),
        np.full(len(sizes), NO_UPPER, dtype=np.int64),
    )
    return True


def _add_queue_rows(builder: ModelBuilder, state: State, start: IntArray, start_option: IntArray) -> None:
    problem = state.problem
    if not problem.policy.queues:
        return
    queue = problem.class_queue[problem.options.job_class[start_option]]
    use, room = option_use(problem)[start_option], queue_ceilings(problem) - state.queue_used
    selected = queue >= 0
    for r in range(use.shape[1]):
        builder.add_rows(
            queue[selected], start[selected], use[selected, r], np.full(len(room), NO_LOWER, dtype=np.int64), room[:, r]
        )
