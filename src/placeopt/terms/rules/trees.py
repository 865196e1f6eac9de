"""Rule: the members of a tree run together, and lie as its groups ask."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from placeopt.linear import NO_LOWER, ModelBuilder
from placeopt.problem import IntArray, Placement, Problem, State
from placeopt.problem.tree import Tree, TreeForm, TreeGroup
from placeopt.terms.rules.spread import add_split, keeps
from placeopt.terms.variables import Variables

NOTHING: IntArray = np.zeros(0, dtype=np.int64)


class Trees:
    """Who runs with whom, and how the workers of several members lie together."""

    def fits(self, state: State, job: int, placement: Placement) -> bool:
        """Return whether the job's tree is as it must be with this member placed too."""
        tree = state.problem.tree_of.get(job)
        return tree is None or tree_keeps(state.problem, tree, {**state.placed(tree.members), job: placement})

    def add_to(self, builder: ModelBuilder, variables: Variables) -> None:
        """Link the starts of members, and add the rows of splits over several of them."""
        v, problem = variables, variables.problem
        if not problem.trees:
            return
        starts = starts_of_trees(v)
        for tree in problem.trees:
            for name, form in tree.forms.items():
                mine = {job: starts.get((job, name), NOTHING) for job in form.starts}
                self._add_form(builder, v, form, mine)
            anchors = {(form.anchor, name) for name, form in tree.forms.items()}
            if len({job for job, _ in anchors}) > 1:  # else the one option of the anchor is that of all
                columns = np.concatenate([v.start[starts.get(key, NOTHING)] for key in sorted(anchors)])
                builder.add_row(columns, 1, NO_LOWER, 1)

    def _add_form(self, builder: ModelBuilder, v: Variables, form: TreeForm, starts: Mapping[int, IntArray]) -> None:
        for job, other in form.needs:
            columns = np.append(v.start[starts[job]], v.start[starts[other]])
            signs = np.repeat([1, -1], [len(starts[job]), len(starts[other])])
            if len(starts[job]):
                builder.add_row(columns, signs, NO_LOWER, 0)
        for group in form.groups:
            here = {job: starts[job] for job in group.members if job in starts}
            bundle = np.flatnonzero(np.isin(v.bundle_start, [s for mine in here.values() for s in mine.tolist()]))
            if not len(bundle):
                continue
            runs = runs_of(builder, v, form, here)
            fixed = [v.problem.running[job] for job in group.members if job not in starts]
            most = sum(len(placement.nodes) for placement in fixed)
            most += sum(int(v.problem.options.workers[v.start_option[starts[job]]].max(initial=0)) for job in here)
            for rule in group.lies:
                add_split(builder, v, rule, bundle, fixed=fixed, most=most, runs=runs)


def starts_of_trees(v: Variables) -> dict[tuple[int, str], IntArray]:
    """Return the positions of the starts of each member of a tree, and id of an option."""
    found: dict[tuple[int, str], list[int]] = {}
    trees = v.problem.tree_of
    for s, (unit, option) in enumerate(zip(v.start_unit.tolist(), v.start_option.tolist(), strict=True)):
        if (job := v.unit_jobs[unit][0]) in trees:
            found.setdefault((job, v.problem.options.name[option]), []).append(s)
    return {key: np.array(positions, dtype=np.int64) for key, positions in found.items()}


def runs_of(builder: ModelBuilder, v: Variables, form: TreeForm, starts: Mapping[int, IntArray]) -> IntArray:
    """Return columns that sum to 1 where any of the members starts, else to 0."""
    needs, first = set(form.needs), list[int]()
    for job in starts:  # those that need no other, or one that needs them too: one for all of these
        tops = all((b, a) in needs for a, b in form.needs if a == job and b in starts)
        if tops and not any((job, other) in needs for other in first):
            first.append(job)
    if len(first) == 1:
        return v.start[starts[first[0]]]
    any_ = builder.add_variables(0, 1)
    columns = [v.start[starts[job]] for job in first]
    builder.define(any_, lambda values: int(any(values[column].any() for column in columns)))
    for column in columns:
        builder.add_row(np.append(column, any_), np.append(np.ones(len(column), dtype=np.int64), -1), NO_LOWER, 0)
    every = np.concatenate(columns)
    builder.add_row(np.append(any_, every), np.append([1], np.full(len(every), -1)), NO_LOWER, 0)
    return any_


def tree_keeps(problem: Problem, tree: Tree, placed: Mapping[int, Placement]) -> bool:
    """Return whether a tree may stand with these members placed: as it runs, or whole and as its groups ask."""
    starts = [job for job in placed if job not in tree.runs]
    if not starts:
        return True
    names = {problem.options.name[placed[job].option] for job in starts}
    form = tree.forms.get(min(names))
    return (
        form is not None
        and len(names) == 1
        and all(job in form.starts for job in starts)
        and all(other in placed for job, other in form.needs if job in placed)
        and all(_group_keeps(problem, group, placed) for group in form.groups)
    )


def _group_keeps(problem: Problem, group: TreeGroup, placed: Mapping[int, Placement]) -> bool:
    mine = [placed[job] for job in group.members if job in placed]
    if all(job in problem.running for job in group.members if job in placed):
        return True  # nothing is added to what runs
    return all(keeps(problem, rule, mine) for rule in group.lies)
