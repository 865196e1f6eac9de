"""
``fillings``: a linear relaxation of any size, over fillings of single GPUs and classes of nodes. It gives bounds only.

A filling says how many jobs of each share a GPU holds; a class of nodes is filled by so many GPUs of each filling.
What is relaxed: CPU, memory and bandwidth are summed over the nodes of a class; which GPUs make up a worker, and where
the workers of a job are; communication, spread and uplinks.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from placeopt.formulations.class_loads import Loads, add_node_rows
from placeopt.formulations.columns import usable_gpus
from placeopt.formulations.job_groups import draft_starts
from placeopt.formulations.maximal_gpu_patterns import maximal_fillings
from placeopt.linear import NO_LOWER, NO_UPPER, LinearModel, ModelBuilder
from placeopt.problem import IntArray, Problem, State
from placeopt.problem.changes import change_limits
from placeopt.terms.objective import value
from placeopt.terms.queue_ceilings import queue_ceilings
from placeopt.terms.rules.queue_share import option_use
from placeopt.terms.variables import MOVE, SHRINK

MAX_FILLINGS = 20_000
"""Columns of a class of nodes; where there would be more (openb needs 1,872 on idle GPUs), one row of summed shares."""
RELAXES = (
    "CPU, memory and bandwidth are summed over alike nodes",
    "which GPUs make up a worker, and where the workers of a job are",
)
CHANGES_RELAX = "running jobs that may be changed stand anywhere on alike nodes, and end in any order of submission"


KnownFillings = dict[tuple[int, tuple[int, ...]], IntArray | None]
"""Maximal fillings by share and sizes; None where there are too many."""


@dataclass(frozen=True, eq=False)
class GpuPatterns:
    """The relaxation: the model, its start columns with their options, and the columns of other objectives."""

    model: LinearModel
    start: IntArray  # (S,) columns: jobs of a crowd that run in an option
    start_milli: IntArray  # (S,) GPU share that such a job holds, at most
    start_option: IntArray  # (S,)
    start_kind: IntArray  # (S,) as in ``terms.variables``
    start_jobs: tuple[tuple[int, ...], ...]  # (S,) the jobs of the crowd; starts of one crowd share them
    bundle: IntArray  # (P,) columns: bundles of a start on a class of nodes
    bundle_start: IntArray  # (P,)
    bundle_class: IntArray  # (P,)
    filling: IntArray  # (F,) columns: GPUs of a class of nodes and a free share that are filled alike
    filling_class: IntArray  # (F,)
    filling_share: IntArray  # (F,)
    slots: IntArray  # (F, Z) jobs of each size in a filling
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
    ways, placed = _add_jobs(builder, state)
    loads = add_node_rows(builder, state, ways.option[placed.start], placed.column, placed.node_class)
    filled = _Filled(np.unique(problem.options.milli[ways.option[placed.start]])[::-1])
    relaxes = RELAXES + _add_gpu_rows(builder, state, ways.option, placed, filled)
    _add_queue_rows(builder, state, ways.column, ways.option)
    held = state.allocation()
    builder.set_objective(ways.column, ways.value, "max", value(problem, held))
    if problem.changeable:
        relaxes += (CHANGES_RELAX,)
    return GpuPatterns(
        model=builder.build(),
        start=ways.column,
        start_milli=ways.milli,
        start_option=ways.option,
        start_kind=ways.kind,
        start_jobs=ways.jobs,
        bundle=placed.column,
        bundle_start=placed.start,
        bundle_class=placed.node_class,
        filling=_joined(filled.column),
        filling_class=_joined(filled.node_class),
        filling_share=_joined(filled.share),
        slots=np.concatenate([np.zeros((0, len(filled.sizes)), dtype=np.int64), *filled.slots]),
        sizes=filled.sizes,
        loads=loads,
        fixed_milli=int(problem.options.total_milli[[placement.option for placement in held if placement]].sum()),
        relaxes=relaxes,
    )


def gpu_milli_objective(fillings: GpuPatterns) -> LinearModel:
    """Return the same relaxation with GPU share as objective: any duals of the first bound this one too."""
    model = fillings.model
    objective = np.zeros(model.num_variables, dtype=np.int64)
    objective[fillings.start] = fillings.start_milli
    return replace(model, objective=objective, offset=fillings.fixed_milli)


@dataclass(frozen=True, eq=False)
class _Placed:
    """Columns that count bundles: (P,) each, by option (position in ``start``) and node class."""

    column: IntArray
    start: IntArray
    node_class: IntArray


@dataclass(frozen=True, eq=False)
class _Ways:
    """Start columns: (S,) each, what the jobs of a crowd do."""

    column: IntArray
    option: IntArray
    kind: IntArray
    value: IntArray
    milli: IntArray
    jobs: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, eq=False)
class _Filled:
    """Columns of fillings, a piece for each class of nodes, over the ``sizes`` of all classes, descending."""

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


def _add_jobs(builder: ModelBuilder, state: State) -> tuple[_Ways, _Placed]:
    """Starts, bundles per node class, and: starts <= jobs of the crowd, bundles = starts x bundles of the option."""
    problem, options = state.problem, state.problem.options
    draft = draft_starts(state)
    crowds = draft.crowds
    ways = _Ways(
        column=builder.add_variables(0, _ints(draft.most), count=len(draft.most)),
        option=_ints(draft.option),
        kind=_ints(draft.kind),
        value=_ints(draft.value),
        milli=_ints(draft.milli),
        jobs=tuple(tuple(crowds[c].jobs) for c in draft.crowd),
    )
    column = builder.add_variables(0, _ints(draft.placed_most), count=len(draft.placed_most))
    placed = _Placed(column, _ints(draft.placed_start), _ints(draft.placed_class))
    ones, sizes = np.ones(len(ways.column), dtype=np.int64), _ints([len(crowd.jobs) for crowd in crowds])
    least = np.where([crowd.must_run for crowd in crowds], sizes, NO_LOWER)
    builder.add_rows(_ints(draft.crowd), ways.column, ones, least.astype(np.int64), sizes)
    zero = np.zeros(len(ways.column), dtype=np.int64)
    builder.add_rows(
        np.concatenate([placed.start, np.arange(len(ways.column))]),
        np.concatenate([column, ways.column]),
        np.concatenate([np.ones(len(column), dtype=np.int64), -options.bundles[ways.option]]),
        zero,
        zero,
    )
    if problem.changeable:
        may_end = np.array([crowds[c].jobs[0] in problem.may_preempt for c in draft.crowd], dtype=bool)
        _add_limits(builder, problem, ways, may_end)
    return ways, placed


def _add_limits(builder: ModelBuilder, problem: Problem, ways: _Ways, may_end: np.ndarray) -> None:
    """At most so many jobs moved, shrunk and preempted; ``may_end`` are the starts of those that may be preempted."""
    most = change_limits(problem)
    for kind, limit in ((MOVE, most["moved"]), (SHRINK, most["shrunk"])):
        columns = ways.column[ways.kind == kind]
        builder.add_row(columns, np.ones(len(columns), dtype=np.int64), NO_LOWER, limit)
    columns = ways.column[may_end]
    least = len(problem.may_preempt) - most["preempted"]
    builder.add_row(columns, np.ones(len(columns), dtype=np.int64), least, NO_UPPER)


def _ints(values: list[int]) -> IntArray:
    return np.array(values, dtype=np.int64)


def _add_gpu_rows(
    builder: ModelBuilder, state: State, start_option: IntArray, placed: _Placed, filled: _Filled
) -> tuple[str, ...]:
    """Slots of every share, by class of nodes: those that the fillings offer cover those that jobs take."""
    problem, options = state.problem, state.problem.options
    option = start_option[placed.start]
    gpus = (options.gpus * options.bundle_workers)[option]
    relaxed: list[str] = []
    known: KnownFillings = {}
    if options.gpu_memory_mib.any():
        relaxed.append("GPU memory is summed over alike nodes")
    for c in np.unique(placed.node_class[gpus > 0]):
        mine = np.flatnonzero((placed.node_class == c) & (gpus > 0))
        usable = _gpus_of_class(state, int(c), np.unique(option[mine]))
        _add_memory_row(builder, state, usable, placed.column[mine], option[mine], gpus[mine])
        if problem.jobs_per_gpu is not None:
            room = int(np.maximum(problem.jobs_per_gpu - state.gpu_jobs[usable], 0).sum())
            builder.add_row(placed.column[mine], gpus[mine], NO_LOWER, room)
        if not problem.shares_bind or problem.jobs_per_gpu == 1:
            continue
        if not _add_fillings(
            builder, state, usable, placed.column[mine], option[mine], gpus[mine], known, int(c), filled
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


def _add_fillings(
    builder: ModelBuilder,
    state: State,
    usable: IntArray,
    column: IntArray,
    option: IntArray,
    gpus: IntArray,
    known: KnownFillings,
    node_class: int,
    filled: _Filled,
) -> bool:
    """
    Add a column per free share and maximal filling; where these are too many, one row of summed shares.

    ``known`` holds what was enumerated for other classes of nodes, most of which ask for the same.
    """
    milli = state.problem.options.milli[option]
    sizes = np.unique(milli)[::-1]
    free, count = np.unique(state.gpu_free_milli[usable], return_counts=True)
    fillings: list[IntArray] = []
    for share in free:
        builder.check_time()
        key = (int(share), tuple(sizes.tolist()))
        if key not in known:
            known[key] = maximal_fillings(int(share), sizes, MAX_FILLINGS)
        found = known[key]
        if found is None or sum(len(f) for f in fillings) + len(found) > MAX_FILLINGS:
            builder.add_row(column, gpus * milli, NO_LOWER, int((free * count).sum()))
            return False
        fillings.append(found)
    filling = builder.add_variables(
        0, np.repeat(count, [len(f) for f in fillings]), count=sum(len(f) for f in fillings)
    )
    group = np.repeat(np.arange(len(free)), [len(f) for f in fillings])
    builder.add_rows(
        group, filling, np.ones(len(filling), dtype=np.int64), np.full(len(free), NO_LOWER, dtype=np.int64), count
    )
    slots = np.concatenate(fillings)  # (fillings, sizes)
    filled.add(filling, node_class, free[group], sizes, slots)
    at, size = np.nonzero(slots)
    builder.add_rows(
        np.concatenate([size, np.searchsorted(-sizes, -milli)]),
        np.concatenate([filling[at], column]),
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
    mine = queue >= 0
    for r in range(use.shape[1]):
        builder.add_rows(
            queue[mine], start[mine], use[mine, r], np.full(len(room), NO_LOWER, dtype=np.int64), room[:, r]
        )
