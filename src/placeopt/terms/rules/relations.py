"""Rule: relations between jobs that must hold (`placeopt.model.Relation` has the meaning)."""

from __future__ import annotations

from functools import partial

import numpy as np

from placeopt.linear import NO_LOWER, ModelBuilder
from placeopt.problem import BoolArray, IntArray, Placement, State
from placeopt.problem.relations import CompiledRelation, DomainCounts
from placeopt.terms.variables import Variables

Block = tuple[IntArray, IntArray, IntArray]
"""Rows, columns and coefficients."""


class RelationsHold:
    """Jobs near others and apart from them."""

    def fits(self, state: State, job: int, placement: Placement) -> bool:
        """Return whether no relation of the job, and no relation to it, keeps it off; where it runs it may stay."""
        if not state.relations:
            return True
        k, relations = int(state.problem.job_class[job]), state.problem.relations
        concerned = [r for r in relations.of_class[k] if r < relations.hard]
        return (
            not concerned
            or state.stays(job, placement)
            or not any(state.relations[r].forbids(k, placement) for r in concerned)
        )

    def add_to(self, builder: ModelBuilder, variables: Variables) -> None:
        """Rows for every relation and domain in which workers of both sides may be."""
        relations = variables.problem.relations
        for relation, fixed in zip(relations.every[: relations.hard], variables.state.relations, strict=False):
            workers = RelatedWorkers(variables, relation, fixed)
            if relation.record.kind == "apart":
                _add_apart(builder, workers)
            else:
                _add_near(builder, workers)


def open_nodes(state: State, job: int, *, alone: bool = True) -> BoolArray | None:
    """
    Shape (N,): the nodes of which no relation keeps off a worker of a job that starts; None: of none.

    ``alone``: Whether it starts alone; otherwise relations near others, none of which is placed, count for nothing.
    """
    problem, k = state.problem, int(state.problem.job_class[job])
    found: BoolArray | None = None
    for r in problem.relations.of_class[k] if state.relations else ():
        counts = state.relations[r]
        waits = not alone and counts.relation.record.kind == "near" and not counts.selected
        mask = counts.open_to(k) if r < problem.relations.hard and not waits else None
        if mask is not None:
            found = mask if found is None else found & mask
    return found


class RelatedWorkers:
    """
    Bundle columns that a relation concerns, by what they are: block entries with a row for each domain.

    ``holds``, ``selected``, ``starts`` and ``ran``, (B,), tell of each bundle what its job is. Beside them, in the
    state that the model begins with, there are the workers of ``fixed``.
    """

    def __init__(self, variables: Variables, relation: CompiledRelation, fixed: DomainCounts) -> None:
        v = variables
        self.relation, self.fixed, self._variables = relation, fixed, v
        k = v.problem.options.job_class[v.bundle_option]
        self._domain = relation.domain[v.bundle_node]
        self.holds, self.selected = relation.holds[k], relation.selected[k]
        self.starts = v.starts_new[v.bundle_start]
        ran = np.array([jobs[0] in v.problem.running for jobs in v.unit_jobs], dtype=bool)
        self.ran: BoolArray = ran[v.start_unit[v.bundle_start]]
        concerned = self._domain[(self.holds | self.selected) & (self._domain >= 0)]
        self.domains: list[int] = np.unique(concerned).tolist()
        self._row = np.full(int(relation.domain.max(initial=-1)) + 2, -1, dtype=np.int64)
        self._row[self.domains] = np.arange(len(self.domains))

    def entries(self, bundles: BoolArray) -> Block:
        """Return rows (of domains), columns and workers of each, of bundles, a mask, that are in a domain."""
        v, mine = self._variables, bundles & (self._domain >= 0)
        return self._row[self._domain[mine]], v.bundle[mine], v.problem.options.bundle_workers[v.bundle_option[mine]]

    def nowhere(self, bundles: BoolArray) -> tuple[IntArray, IntArray]:
        """Return columns, and workers of each, of bundles, a mask, that are in no domain."""
        v, mine = self._variables, bundles & (self._domain < 0)
        return v.bundle[mine], v.problem.options.bundle_workers[v.bundle_option[mine]]

    def most(self, entries: Block) -> IntArray:
        """Shape (domains,): most workers that such columns can stand for together."""
        row, column, workers = entries
        v = self._variables
        upper = np.zeros(int(v.bundle.max(initial=-1)) + 1, dtype=np.int64)
        upper[v.bundle] = v.bundle_most
        most: IntArray = np.bincount(row, upper[column] * workers, len(self.domains)).astype(np.int64)
        return most

    def there(self, counts: dict[int, int]) -> IntArray:
        """Shape (domains,): the workers of such counts in each domain."""
        return np.array([counts.get(domain, 0) for domain in self.domains], dtype=np.int64)


def _add_apart(builder: ModelBuilder, workers: RelatedWorkers) -> None:
    """
    In each domain only one may start of: one worker of both sides, holders alone, selected jobs alone.

    What stays of the other side, and what is fixed, is in the way.
    """
    count = len(workers.domains)
    each, fixed = np.arange(count), workers.fixed
    holds, selected, starts = workers.holds, workers.selected, workers.starts
    sides = (holds & selected, holds & ~selected, selected & ~holds)
    own, holders, chosen = (workers.entries(side & starts) for side in sides)
    no_holders, no_chosen = workers.there(fixed.selected) > 0, workers.there(fixed.holders) > 0
    holder_most = np.where(no_holders, 0, workers.most(holders))
    chosen_most = np.where(no_chosen, 0, workers.most(chosen))
    some_holders, some_chosen = builder.add_variables(0, holder_most > 0), builder.add_variables(0, chosen_most > 0)
    for some, entries, most in ((some_holders, holders, holder_most), (some_chosen, chosen, chosen_most)):
        builder.define(some, partial(_is_there, entries, count))
        builder.add_parts(NO_LOWER, 0, entries, (each, some, -most), count=count)
    any_ = (each, some_holders, 1), (each, some_chosen, 1)
    builder.add_parts(NO_LOWER, np.where(no_holders | no_chosen, 0, 1), own, count=count)
    builder.add_parts(NO_LOWER, 1, own, *any_, count=count)
    for staying, start in (
        (workers.entries(selected & ~starts), some_holders),
        (workers.entries(holds & ~starts), some_chosen),
    ):
        most = workers.most(staying)
        ours = own[0], own[1], own[2] * most[own[0]]
        builder.add_parts(NO_LOWER, most, staying, ours, (each, start, most), count=count)


def _is_there(entries: Block, count: int, values: IntArray) -> IntArray:
    return (inside(entries, count, values) > 0).astype(np.int64)


def inside(entries: Block, count: int, values: IntArray) -> IntArray:
    """Shape (count,): the workers that the columns of each row stand for."""
    row, column, workers = entries
    return np.bincount(row, values[column] * workers, count).astype(np.int64)


def _add_near(builder: ModelBuilder, workers: RelatedWorkers) -> None:
    """A binary for each domain without fixed anchors says that it is opened; at most one is without an anchor."""
    holds, selected, starts = workers.holds, workers.selected, workers.starts
    if len(nowhere := workers.nowhere(holds & starts)[0]):
        builder.add_row(nowhere, 1, 0, 0)
    fixed, count = workers.fixed, len(workers.domains)
    others = any(domain not in workers.domains for domain in fixed.closed())  # opened where the model has no column
    starting, own = workers.entries(holds & starts), workers.entries(holds & selected & starts)
    free, stays = workers.entries(selected & starts & ~holds), workers.entries(selected & ~starts)
    needs = workers.there(fixed.anchors) == 0
    may_open = np.array([not others and fixed.may_open(domain) for domain in workers.domains], dtype=bool)
    already = workers.there(fixed.starting) > 0
    first = builder.add_variables(0, needs & may_open)
    held = np.where(needs, workers.most(starting), 0)
    each = np.arange(count)

    def opened(values: IntArray) -> IntArray:
        anchors = inside(free, count, values) + inside(stays, count, values)
        starts = inside(starting, count, values) + already
        return np.where(needs & (anchors == 0), starts > 0, 0).astype(np.int64)

    builder.define(first, opened)
    # a start needs an anchor, fixed or in the model, or that its domain is the one that is opened
    anchors = [(row, column, -np.minimum(amount, 1) * held[row]) for row, column, amount in (free, stays)]
    builder.add_parts(
        NO_LOWER, np.where(needs, 0, workers.most(starting)), starting, *anchors, (each, first, -held), count=count
    )
    builder.add_parts(
        NO_LOWER,
        np.where(already & needs, -1, 0),
        (each, first, -1),
        *[(row, column, -np.ones(len(row), dtype=np.int64)) for row, column, _ in (free, stays)],
        count=count,
    )
    builder.add_row(first, 1, NO_LOWER, 1)
    seeds = workers.there(fixed.selected)  # where no anchor is, these are of jobs that start with the relation
    row, column, amount = own
    builder.add_parts(NO_LOWER, seeds, (each, first, 1), (row, column, -amount), count=count)
    ran = workers.entries(selected & workers.ran)
    if len(ran[0]) and may_open.any():  # one that ran forbids to open another domain than its own
        some, most = builder.add_variables(0, 1), workers.most(ran)
        builder.define(some, lambda values: values[first].max())
        builder.add_row(np.append(first, some), np.append(np.ones(count, dtype=np.int64), -1), 0, 0)
        builder.add_parts(NO_LOWER, most, ran, (each, np.repeat(some, count), most), (each, first, -most), count=count)
