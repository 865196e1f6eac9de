"""Rules: all of a job or nothing; where it may start at all; how workers are divided among nodes and domains."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

import numpy as np

from placeopt.linear import NO_LOWER, NO_UPPER, Entries, ModelBuilder
from placeopt.model import Split
from placeopt.model import Spread as SpreadRecord
from placeopt.problem import IntArray, Placement, Problem, State, change_of
from placeopt.problem.free_capacity import eligible_domains
from placeopt.terms.variables import STAY, Variables

LieRule = Split | SpreadRecord


class Gang:
    """Horus eq. 4, DynamoML: exactly the option's workers and GPUs; no GPU twice; at most one option a job."""

    def fits(self, state: State, job: int, placement: Placement) -> bool:
        """Return whether the placement is one of the job's options in full, each GPU on its worker's node."""
        problem, o = state.problem, placement.option
        options = problem.options
        gpus = int(options.gpus[o])
        return (
            o in problem.options_of(job)
            and len(placement.nodes) == options.workers[o]
            and len(placement.gpus) == gpus * len(placement.nodes)
            and len(set(placement.gpus)) == len(placement.gpus)
            and problem.gpu_node[list(placement.gpus)].tolist()
            == [node for node in placement.nodes for _ in range(gpus)]
        )

    def add_to(self, builder: ModelBuilder, variables: Variables) -> None:
        """Link units to starts, starts to bundles (all of the option), and bundles to grants (all their GPUs)."""
        v, options = variables, variables.problem.options
        builder.add_rows(v.start_unit, v.start, 1, v.unit_least, v.unit_size)
        starts = (np.arange(len(v.start)), v.start, -options.bundles[v.start_option])
        builder.add_parts(0, 0, (v.bundle_start, v.bundle, 1), starts, count=len(v.start))
        per_bundle = (options.gpus * options.bundle_workers)[v.bundle_option]
        has_gpus = per_bundle > 0
        rows = np.cumsum(has_gpus) - 1
        bundles = (rows[has_gpus], v.bundle[has_gpus], -per_bundle[has_gpus])
        builder.add_parts(0, 0, (rows[v.grant_bundle], v.grant, 1), bundles, count=int(has_gpus.sum()))


class Where:
    """
    A static mask, compiled per option and class of node or type of GPU.

    It says where work may start, so a running job that stays, whole or shrunk, is exempt.
    """

    def fits(self, state: State, job: int, placement: Placement) -> bool:
        """Return whether every node and GPU is allowed."""
        problem, options, o = state.problem, state.problem.options, placement.option
        if job in problem.running and change_of(problem, job, placement) != "moved":
            return True
        nodes, gpus = problem.node_class[list(placement.nodes)], problem.gpu_type[list(placement.gpus)]
        return bool(options.node_class_ok[o][nodes].all() and options.gpu_type_ok[o][gpus].all())

    def add_to(self, builder: ModelBuilder, variables: Variables) -> None:
        """Nothing to add: formulations make no columns where the mask forbids a start."""


class Spread:
    """Single node, most workers per node, an exact number of domains of a level, with an exact number of workers."""

    def fits(self, state: State, job: int, placement: Placement) -> bool:
        """Return whether the workers lie as the option asks; a running job may stay as it lies."""
        problem, o = state.problem, placement.option
        if job in problem.running and change_of(problem, job, placement) == "kept":
            return True
        if len(placement.nodes) == 1 and not problem.options.lies[o] and problem.options.part_level[o] is None:
            return bool(problem.options.workers_per_node[o] >= 1)
        per_node = Counter(placement.nodes)
        if problem.options.bundles[o] == 1 and len(per_node) > 1:
            return False
        if max(per_node.values()) > problem.options.workers_per_node[o]:
            return False
        level = problem.options.part_level[o]
        if level is not None and placement.gpus:
            parts = set(problem.gpu_part[level][list(placement.gpus)].tolist())
            if len(parts) > 1 or -1 in parts:
                return False
        return all(keeps(problem, split, [placement]) for split in problem.options.lies[o])

    def add_to(self, builder: ModelBuilder, variables: Variables) -> None:
        """Limits per node as rows; splits with a binary per domain. Single-node options have one bundle: no row."""
        v, options = variables, variables.problem.options
        limit = options.workers_per_node[v.bundle_option]
        binds = (options.bundles[v.bundle_option] > 1) & (limit < options.workers[v.bundle_option])
        binds &= v.start_kind[v.bundle_start] != STAY
        size = v.unit_size[v.start_unit[v.bundle_start]]
        builder.add_rows(np.arange(int(binds.sum())), v.bundle[binds], 1, NO_LOWER, (limit * size)[binds])
        for s, option in enumerate(v.start_option.tolist()):
            for split in options.lies[option] if v.start_kind[s] != STAY else ():
                # formulations do not fold options with splits: the unit has one job
                mine, most = np.flatnonzero(v.bundle_start == s), int(options.workers[option])
                add_split(builder, v, split, mine, most=most, runs=v.start[s : s + 1])
            level = options.part_level[option]
            if level is not None and v.start_kind[s] != STAY:
                self._add_part(builder, v, s, level)

    def gpu_classes(self, problem: Problem) -> IntArray | None:
        """GPUs of different parts are told apart where an option must be inside one."""
        levels = list(problem.gpu_part.values())
        return np.unique(np.stack(levels), axis=1, return_inverse=True)[1] if levels else None

    def forbids_folding(self, problem: Problem, option: int) -> bool:
        """Return whether a job in the option must be inside one part of a machine."""
        return problem.options.part_level[option] is not None

    def _add_part(self, builder: ModelBuilder, v: Variables, s: int, level: str) -> None:
        """A binary for each part that may hold the job, one of which does."""
        grants = np.flatnonzero(v.grant_start == s)
        part = v.problem.gpu_part[level][v.cell_gpu[v.grant_cell[grants]]]
        if len(nowhere := grants[part < 0]):
            builder.add_row(v.grant[nowhere], 1, 0, 0)
        grants, part = grants[part >= 0], part[part >= 0]
        numbers, row = np.unique(part, return_inverse=True)
        held = builder.add_variables(0, 1, count=len(numbers))
        builder.define(held, lambda values: np.bincount(row, values[v.grant[grants]], len(numbers)) > 0)
        need = int(v.problem.options.bundle_gpus[v.start_option[s]])
        if need:
            each = np.arange(len(numbers))
            builder.add_parts(0, 0, (row, v.grant[grants], 1), (each, held, -need), count=len(numbers))


def keeps(problem: Problem, rule: LieRule, placements: Sequence[Placement]) -> bool:
    """Return whether the workers of placements, of alike conditions, lie as a split or a spread asks."""
    inside = workers_in(problem, rule.level, placements)
    if not inside or -1 in inside:
        return not inside
    counts = inside.values()
    if isinstance(rule, Split):
        return len(counts) == rule.domains and (rule.workers is None or set(counts) == {rule.workers})
    parts = 0 if rule.segment is None else sum(count % rule.segment > 0 for count in counts)
    if parts > (rule.remainder == "smaller") or max(counts) > (rule.workers_max or max(counts)):
        return False
    eligible = eligible_domains(problem, placements[0].option, rule)
    fewest = min((inside[domain] for domain in eligible), default=0)
    return rule.skew_max is None or max(counts) - fewest <= rule.skew_max


def add_split(
    builder: ModelBuilder,
    v: Variables,
    rule: LieRule,
    bundle: IntArray,
    *,
    fixed: Iterable[Placement] = (),
    most: int,
    runs: IntArray,
) -> None:
    """
    Add the rows that allow what `keeps` allows.

    - ``bundle``: Shape (Z,), at least one: positions of bundles, none of which is counted with another job's.
    - ``fixed``: What runs already and stays.
    - ``most``: Workers altogether, at most.
    - ``runs``: Columns that sum to 1 where the workers of the bundles run, else to 0: the split has to hold there.
    """
    inside = _Inside(builder, v, rule.level, bundle, workers_in(v.problem, rule.level, fixed), runs)
    if isinstance(rule, Split):
        _add_domains(builder, rule, inside, most)
        return
    if rule.workers_max is not None:
        builder.add_parts(NO_LOWER, rule.workers_max, inside.entries, count=inside.count)
    if rule.segment is not None:
        _add_segments(builder, rule.segment, inside, most, smaller=rule.remainder == "smaller")
    if rule.skew_max is not None:
        eligible = eligible_domains(v.problem, int(v.bundle_option[bundle[0]]), rule)
        _add_skew(builder, rule.skew_max, inside, most, eligible)


class _Inside:
    """
    The workers in each domain in use, ``count`` of them; bundles in none are closed.

    ``entries``: Of a block of a row for each domain: the workers that are there, all of them or none. ``nodes``: of a
    block of a row for each bundle: the column, and its domain and upper bound.
    """

    def __init__(
        self, builder: ModelBuilder, v: Variables, level: str, bundle: IntArray, stay: Counter[int], runs: IntArray
    ) -> None:
        domain = v.problem.split_domain[level][v.bundle_node[bundle]]
        if len(nowhere := bundle[domain < 0]):
            builder.add_row(v.bundle[nowhere], 1, 0, 0)
        if stay[-1]:  # what runs already lies in none, so nothing may join it
            builder.add_row(runs, 1, 0, 0)
        bundle, domain = bundle[domain >= 0], domain[domain >= 0]
        self.domain = np.union1d(domain, np.array([number for number in stay if number >= 0], dtype=np.int64))
        fixed = np.array([stay[number] for number in self.domain.tolist()], dtype=np.int64)
        self.count, self.runs, row = len(self.domain), runs, np.searchsorted(self.domain, domain)
        self.each = np.arange(self.count)
        self.entries = (
            np.append(row, np.repeat(self.each, len(runs))),
            np.append(v.bundle[bundle], np.tile(runs, self.count)),
            np.append(v.problem.options.bundle_workers[v.bundle_option[bundle]], np.repeat(fixed, len(runs))),
        )
        self.nodes = v.bundle[bundle], row, v.bundle_most[bundle]

    def of(self, values: IntArray) -> IntArray:
        """Return the workers in each domain."""
        row, column, workers = self.entries
        return np.bincount(row, values[column] * workers, self.count).astype(np.int64)


def workers_in(problem: Problem, level: str, placements: Iterable[Placement]) -> Counter[int]:
    """Return the workers of placements in each domain of a level, or on each node; -1: in none."""
    domain = problem.split_domain[level]
    return Counter(int(domain[node]) for placement in placements for node in placement.nodes)


def _add_domains(builder: ModelBuilder, split: Split, inside: _Inside, most: int) -> None:
    """Add a binary for each domain in use."""
    count, each = inside.count, inside.each
    used = builder.add_variables(0, 1, count=count)
    builder.define(used, lambda values: inside.of(values) > 0)
    least, most = (1, most) if split.workers is None else (split.workers, split.workers)
    builder.add_parts(NO_LOWER, 0, inside.entries, (each, used, -most), count=count)
    builder.add_parts(0, NO_UPPER, inside.entries, (each, used, -least), count=count)
    coefficients = np.append(np.ones(count, dtype=np.int64), np.full(len(inside.runs), -split.domains))
    builder.add_row(np.append(used, inside.runs), coefficients, 0, 0)
    columns, row, upper = inside.nodes
    if len(columns) > count:  # the same node by node: tight even where ``used`` is a fraction
        rows = np.arange(len(columns))
        builder.add_parts(NO_LOWER, 0, (rows, columns, 1), (rows, used[row], -upper), count=len(rows))


def _add_segments(builder: ModelBuilder, size: int, inside: _Inside, most: int, *, smaller: bool) -> None:
    """Add the number of segments in each domain, and what is left over of one, in one domain."""
    count, each = inside.count, inside.each
    segments = builder.add_variables(0, np.full(count, most // size, dtype=np.int64))
    builder.define(segments, lambda values: inside.of(values) // size)
    parts: list[Entries] = [inside.entries, (each, segments, -size)]
    if smaller and size > 1:
        rest = builder.add_variables(0, size - 1, count=count)
        builder.define(rest, lambda values: inside.of(values) % size)
        broken = builder.add_variables(0, 1, count=count)
        builder.define(broken, lambda values: inside.of(values) % size > 0)
        builder.add_parts(NO_LOWER, 0, (each, rest, 1), (each, broken, 1 - size), count=count)
        builder.add_row(broken, 1, NO_LOWER, 1)
        parts.append((each, rest, -1))
    builder.add_parts(0, 0, *parts, count=count)


def _add_skew(builder: ModelBuilder, skew: int, inside: _Inside, most: int, eligible: Collection[int]) -> None:
    """Add the workers that no eligible domain has fewer of."""
    count, each = inside.count, inside.each
    among = np.isin(inside.domain, np.array(sorted(eligible), dtype=np.int64))
    shared = most // len(eligible) if len(eligible) and among.sum() == len(eligible) else 0
    fewest = builder.add_variables(0, shared)
    builder.define(fewest, lambda values: min(int(inside.of(values)[among].min(initial=shared)), shared))
    builder.add_parts(NO_LOWER, skew, inside.entries, (each, np.repeat(fewest, count), -1), count=count)
    lowest = np.where(among, 0, NO_LOWER)
    builder.add_parts(lowest, NO_UPPER, inside.entries, (each, np.repeat(fewest, count), -1), count=count)
