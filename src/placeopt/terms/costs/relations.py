"""Cost: soft relations between jobs that are broken (`placeopt.model.Relation` has the meaning)."""

from __future__ import annotations

import numpy as np

from placeopt.linear import NO_LOWER, NO_UPPER, ModelBuilder
from placeopt.problem import IntArray, Problem, State
from placeopt.terms.linearized_costs import CostPrices
from placeopt.terms.protocols import Cost, Expression, Part
from placeopt.terms.rules.relations import RelatedWorkers, inside
from placeopt.terms.variables import Variables


class RelationsCost(Cost):
    """Sum of the weights of soft relations, by the workers of their jobs for which they are broken."""

    name = "relations"
    unit = "weights"

    def of(self, state: State, part: Part) -> int:
        """Sum over relations and domains."""
        if not state.relations:
            return 0
        total, of_class = 0, state.problem.relations.of_class
        for r in {r for k in set(state.problem.job_class[list(part.jobs)].tolist()) for r in of_class[k]}:
            counts = state.relations[r]
            if counts.weight:
                of_node = counts.relation.domain_of_node
                domains = counts.holders if part.is_all else {of_node[node] for node in part.nodes}
                total += counts.weight * sum(map(counts.broken_in, domains))
        return total

    def worst(self, problem: Problem) -> int:
        """Every relation of every job broken for the most workers that it can have."""
        most = problem.most_of_class(problem.options.workers)
        weight = np.zeros(problem.num_classes, dtype=np.int64)
        for relation in problem.relations.every[problem.relations.hard :]:
            weight += np.where(relation.holds, relation.record.weight or 0, 0)
        return int((most * weight)[problem.job_class].sum())

    def add_to(self, builder: ModelBuilder, variables: Variables) -> Expression:
        """In each domain a column for the broken ones of those jobs that it selects itself, and one for the others."""
        relations = variables.problem.relations
        prices, constant = CostPrices(builder), 0
        for relation, fixed in zip(
            relations.every[relations.hard :], variables.state.relations[relations.hard :], strict=True
        ):
            workers = RelatedWorkers(variables, relation, fixed)
            unseen = [domain for domain in fixed.holders if domain not in workers.domains]
            constant += fixed.weight * sum(map(fixed.broken_in, unseen))
            if relation.record.kind == "near":
                nowhere, amounts = workers.nowhere(workers.holds)
                prices.add(nowhere, fixed.weight * amounts)
            for both in (False, True):
                prices.add(_add_broken(builder, workers, both=both), fixed.weight)
        return (*prices.hand_over(), constant)


def _add_broken(builder: ModelBuilder, workers: RelatedWorkers, *, both: bool) -> IntArray:
    """
    Return columns, one a domain: the workers there for which the relation is broken.

    ``both``: Of those holders that it selects, which need another selected worker beside them; else of the others.
    """
    fixed, count, own = workers.fixed, len(workers.domains), 1 + both
    each = np.arange(count)
    concerned, selected = workers.entries(workers.holds & (workers.selected == both)), workers.entries(workers.selected)
    there = workers.there(fixed.both) if both else workers.there(fixed.holders) - workers.there(fixed.both)
    chosen = workers.there(fixed.selected)
    most, most_chosen = workers.most(concerned) + there, workers.most(selected) + chosen
    met = builder.add_variables(0, 1, count=count)  # whether there are as many selected ones
    broken = builder.add_variables(0, most)

    builder.define(met, lambda values: inside(selected, count, values) + chosen >= own)
    apart = workers.relation.record.kind == "apart"

    def counted(values: IntArray) -> IntArray:
        enough = inside(selected, count, values) + chosen >= own
        return np.where(enough == apart, inside(concerned, count, values) + there, 0).astype(np.int64)

    builder.define(broken, counted)
    row, column, amount = concerned
    minus = row, column, -amount
    if apart:  # met is 1 where selected >= own
        builder.add_parts(
            NO_LOWER, own - 1 - chosen, selected, (each, met, -(most_chosen - own + 1).clip(0)), count=count
        )
        builder.add_parts(there - most, NO_UPPER, (each, broken, 1), minus, (each, met, -most), count=count)
    else:  # met is 0 where selected < own
        builder.add_parts(-chosen, NO_UPPER, selected, (each, met, -own), count=count)
        builder.add_parts(there, NO_UPPER, (each, broken, 1), minus, (each, met, most), count=count)
    return broken
