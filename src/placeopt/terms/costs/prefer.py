"""Cost: how far down their lists of preferred levels groups of workers are kept together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from placeopt.linear import NO_LOWER, ModelBuilder
from placeopt.problem import IntArray, Placement, Problem, State
from placeopt.problem.tree import Tree, TreeForm, TreeGroup
from placeopt.terms.linearized_costs import CostPrices
from placeopt.terms.protocols import Cost, Expression, Part
from placeopt.terms.rules.spread import workers_in
from placeopt.terms.rules.trees import runs_of, starts_of_trees
from placeopt.terms.variables import Variables

NOTHING: IntArray = np.zeros(0, dtype=np.int64)


class PreferCost(Cost):
    """Sum over groups of the index of the first level of ``prefer`` of which one domain holds them, or their number."""

    name = "prefer"
    unit = "levels"
    never_lowered_by_starts = True

    def of(self, state: State, part: Part) -> int:
        """Sum over trees."""
        return sum(i for tree in part.trees for _, i in _reached(state.problem, tree, state.placed(tree.members)))

    def worst(self, problem: Problem) -> int:
        """Every group nowhere together, in the worst option."""
        return sum(
            max((sum(len(group.prefer) for group in form.groups) for form in tree.forms.values()), default=0)
            for tree in problem.trees
        )

    def add_to(self, builder: ModelBuilder, variables: Variables) -> Expression:
        """A binary for each domain that may be a group's home: at most one is, and what it saves counts."""
        problem, prices, constant = variables.problem, CostPrices(builder), 0
        starts = starts_of_trees(variables)
        for tree in problem.trees:
            runs = {job: problem.running[job] for job in tree.runs}
            constant += sum(i for _, i in _reached(problem, tree, runs))
            for name, form in tree.forms.items():
                for group in form.groups:
                    here = {job: mine for job in group.members if len(mine := starts.get((job, name), NOTHING))}
                    if group.prefer and here:
                        prices.add(*_add_group(builder, variables, form, group, here))
        return (*prices.hand_over(), constant)


def _add_group(
    builder: ModelBuilder, v: Variables, form: TreeForm, group: TreeGroup, starts: Mapping[int, IntArray]
) -> tuple[IntArray, IntArray]:
    """Return columns and coefficients of what a group costs where any of its members starts."""
    problem, longest = v.problem, len(group.prefer)
    runs = runs_of(builder, v, form, starts)
    bundle = np.flatnonzero(np.isin(v.bundle_start, np.concatenate(list(starts.values()))))
    workers = problem.options.bundle_workers[v.bundle_option[bundle]]
    still = [problem.running[job] for job in group.members if job in problem.running]
    fixed = np.array([node for held in still for node in held.nodes], dtype=np.int64)
    most = len(fixed) + sum(int(problem.options.workers[v.start_option[mine]].max()) for mine in starts.values())
    homes, level_of, rows = list[IntArray](), list[int](), list[tuple[IntArray, IntArray]]()
    for i, level in enumerate(group.prefer):
        domain = problem.split_domain[level]
        of_bundle = domain[v.bundle_node[bundle]]
        for number in np.unique(of_bundle[of_bundle >= 0]).tolist():
            home, outside = builder.add_variables(0, 1), of_bundle != number
            away = int((domain[fixed] != number).sum())
            columns = np.concatenate([v.bundle[bundle[outside]], runs, home])
            counts = np.concatenate([workers[outside], np.full(len(runs), away), [most]])
            builder.add_row(columns, counts, NO_LOWER, most)
            homes.append(home)
            rows.append((columns[:-1], counts[:-1]))
            level_of.append(i)
    every = np.concatenate([NOTHING, *homes])
    builder.add_row(np.append(every, runs), np.repeat([1, -1], [len(every), len(runs)]), NO_LOWER, 0)
    builder.define(every, lambda values: _first_home(values, runs, rows))
    now = _group_score(problem, group, still)
    saved = np.array([i - longest for i in level_of], dtype=np.int64)
    return np.append(runs, every), np.append(np.full(len(runs), longest - now), saved)


def _first_home(values: IntArray, runs: IntArray, rows: Sequence[tuple[IntArray, IntArray]]) -> IntArray:
    """Return 1 for the first home outside of which no worker is, of a group that runs, else 0."""
    inside = (i for i, (columns, counts) in enumerate(rows) if not values[columns] @ counts)
    first = next(inside, -1) if values[runs].any() else -1
    return np.array([i == first for i in range(len(rows))], dtype=np.int64)


def reached_levels(problem: Problem, tree: Tree, placed: Mapping[int, Placement]) -> dict[str, str | None]:
    """
    Return the first preferred level of which one domain holds each group that prefers some; None where none does.

    ``placed``: The members of the tree that run or start.
    """
    return {group.name: (*group.prefer, None)[i] for group, i in _reached(problem, tree, placed)}


def _reached(problem: Problem, tree: Tree, placed: Mapping[int, Placement]) -> list[tuple[TreeGroup, int]]:
    """Return the groups that prefer levels and have members placed, and what each costs."""
    if not placed:
        return []
    form = tree.forms[problem.options.name[next(iter(placed.values())).option]]
    members = [
        (group, [placed[job] for job in group.members if job in placed]) for group in form.groups if group.prefer
    ]
    return [(group, _group_score(problem, group, mine)) for group, mine in members if mine]


def _group_score(problem: Problem, group: TreeGroup, placed: Sequence[Placement]) -> int:
    if not placed:
        return 0
    together = (set(workers_in(problem, level, placed)) for level in group.prefer)
    return next((i for i, domains in enumerate(together) if len(domains) == 1 and -1 not in domains), len(group.prefer))
