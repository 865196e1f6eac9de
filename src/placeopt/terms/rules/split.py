"""How workers are divided among the domains of a level: the one rule behind the splits of options and of trees."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence

import numpy as np

from placeopt.linear import NO_LOWER, NO_UPPER, Entries, ModelBuilder
from placeopt.model import Split, Spread
from placeopt.problem import IntArray, Placement, Problem
from placeopt.problem.free_capacity import eligible_domains
from placeopt.terms.variables import Variables

LieRule = Split | Spread


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
