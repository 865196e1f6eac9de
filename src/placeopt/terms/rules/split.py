"""How workers are divided among the domains of a level: the one rule behind the splits of options and of trees."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from placeopt.linear import NO_LOWER, NO_UPPER, Entries, ModelBuilder
from placeopt.model import Split, Spread
from placeopt.problem import IntArray, Placement, Problem
from placeopt.problem.classes import eligible_domains
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


@dataclass(frozen=True)
class Counted:
    """
    The workers that a split counts: Z bundle columns in D domains, and others that lie fixed.

    None of the bundles is counted together with another job's. The split has to hold where ``runs`` sum to 1.
    """

    variables: Variables
    bundle: IntArray  # (Z,) positions of bundles in domains of the level
    workers: IntArray  # (Z,) in one of each
    row: IntArray  # (Z,) the domain, of those in use
    domain: IntArray  # (D,) number of each domain in use, ascending
    fixed: IntArray  # (D,) workers that run there already and stay
    most: int  # workers altogether, at most
    runs: IntArray  # columns that sum to 1 where the workers of the bundles run, else to 0

    @cached_property
    def entries(self) -> tuple[IntArray, IntArray, IntArray]:
        """Of a block of a row for each domain: the workers that are there, all of them or none."""
        domains, times = len(self.domain), len(self.runs)
        return (
            np.append(self.row, np.repeat(self.each, times)),
            np.append(self.variables.bundle[self.bundle], np.tile(self.runs, domains)),
            np.append(self.workers, np.repeat(self.fixed, times)),
        )

    @property
    def each(self) -> IntArray:
        """The domains as rows."""
        return np.arange(len(self.domain))

    def inside(self, values: IntArray) -> IntArray:
        """Return the workers in each domain, (D,)."""
        row, column, workers = self.entries
        return np.bincount(row, values[column] * workers, len(self.domain)).astype(np.int64)


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

    ``bundle``: (Z,) positions, at least one; ``fixed``: workers that stay; ``most``, ``runs`` as in `Counted`.
    """
    domain_of_node, problem = v.problem.split_domain[rule.level], v.problem
    domain = domain_of_node[v.bundle_node[bundle]]
    stay = workers_in(problem, rule.level, fixed)
    if len(nowhere := bundle[domain < 0]):
        builder.add_row(v.bundle[nowhere], 1, 0, 0)
    if stay[-1]:  # what runs already lies in none, so nothing may join it
        builder.add_row(runs, 1, 0, 0)
    eligible = eligible_domains(problem, int(v.bundle_option[bundle[0]]), rule)
    bundle, domain = bundle[domain >= 0], domain[domain >= 0]
    numbers = np.union1d(domain, np.array([number for number in stay if number >= 0], dtype=np.int64))
    counted = Counted(
        variables=v,
        bundle=bundle,
        workers=problem.options.bundle_workers[v.bundle_option[bundle]],
        row=np.searchsorted(numbers, domain),
        domain=numbers,
        fixed=np.array([stay[number] for number in numbers.tolist()], dtype=np.int64),
        most=most,
        runs=runs,
    )
    if isinstance(rule, Split):
        _add_domains(builder, rule, counted)
        return
    if rule.workers_max is not None:
        builder.add_parts(NO_LOWER, rule.workers_max, counted.entries, count=len(counted.domain))
    if rule.segment is not None:
        _add_segments(builder, rule.segment, counted, smaller=rule.remainder == "smaller")
    if rule.skew_max is not None:
        _add_skew(builder, rule.skew_max, counted, eligible)


def workers_in(problem: Problem, level: str, placements: Iterable[Placement]) -> Counter[int]:
    """Return the workers of placements in each domain of a level, or on each node; -1: in none."""
    domain = problem.split_domain[level]
    return Counter(int(domain[node]) for placement in placements for node in placement.nodes)


def _add_domains(builder: ModelBuilder, split: Split, counted: Counted) -> None:
    """Add a binary for each domain in use."""
    count, each, v = len(counted.domain), counted.each, counted.variables
    used = builder.add_variables(0, 1, count=count)
    builder.define(used, lambda values: counted.inside(values) > 0)
    least, most = (1, counted.most) if split.workers is None else (split.workers, split.workers)
    builder.add_parts(NO_LOWER, 0, counted.entries, (each, used, -most), count=count)
    builder.add_parts(0, NO_UPPER, counted.entries, (each, used, -least), count=count)
    coefficients = np.append(np.ones(count, dtype=np.int64), np.full(len(counted.runs), -split.domains))
    builder.add_row(np.append(used, counted.runs), coefficients, 0, 0)
    if len(counted.bundle) > count:  # the same node by node: tight even where ``used`` is a fraction
        rows = np.arange(len(counted.bundle))
        limits = (rows, used[counted.row], -v.bundle_most[counted.bundle])
        builder.add_parts(NO_LOWER, 0, (rows, v.bundle[counted.bundle], 1), limits, count=len(rows))


def _add_segments(builder: ModelBuilder, size: int, counted: Counted, *, smaller: bool) -> None:
    """Add the number of segments in each domain, and what is left over of one, in one domain."""
    count, each = len(counted.domain), counted.each
    segments = builder.add_variables(0, np.full(count, counted.most // size, dtype=np.int64))
    builder.define(segments, lambda values: counted.inside(values) // size)
    parts: list[Entries] = [counted.entries, (each, segments, -size)]
    if smaller and size > 1:
        rest = builder.add_variables(0, size - 1, count=count)
        builder.define(rest, lambda values: counted.inside(values) % size)
        broken = builder.add_variables(0, 1, count=count)
        builder.define(broken, lambda values: counted.inside(values) % size > 0)
        builder.add_parts(NO_LOWER, 0, (each, rest, 1), (each, broken, 1 - size), count=count)
        builder.add_row(broken, 1, NO_LOWER, 1)
        parts.append((each, rest, -1))
    builder.add_parts(0, 0, *parts, count=count)


def _add_skew(builder: ModelBuilder, skew: int, counted: Counted, eligible: Collection[int]) -> None:
    """Add the workers that no eligible domain has fewer of."""
    count, each = len(counted.domain), counted.each
    among = np.isin(counted.domain, np.array(sorted(eligible), dtype=np.int64))
    shared = counted.most // len(eligible) if len(eligible) and among.sum() == len(eligible) else 0
    fewest = builder.add_variables(0, shared)
    builder.define(fewest, lambda values: min(int(counted.inside(values)[among].min(initial=shared)), shared))
    builder.add_parts(NO_LOWER, skew, counted.entries, (each, np.repeat(fewest, count), -1), count=count)
    lowest = np.where(among, 0, NO_LOWER)
    builder.add_parts(lowest, NO_UPPER, counted.entries, (each, np.repeat(fewest, count), -1), count=count)
