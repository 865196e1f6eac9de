"""Whether a job fits beside others, and which of its rules keep it out: those that cannot hold together."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

from placeopt.deadline import FOREVER, Deadline
from placeopt.explain.question import Beside, Question
from placeopt.explain.records import Constraint
from placeopt.explain.words import condition_words, constraint_name, constraints, group_condition_words, spread_words
from placeopt.feasibility.fit import fit
from placeopt.feasibility.free_capacity import FreeCapacity
from placeopt.feasibility.requirement import WITHOUT, Requirement
from placeopt.model import Group, Job, Relation, Split, Toleration
from placeopt.model.conditions import ANY_NODE
from placeopt.solvers.result import SolveOptions
from placeopt.solving.tree_fit import fits_by_model

T = TypeVar("T")
Edit = Callable[[Job], Job]
"""A change of the round, as one of each of its jobs."""
OF_GROUPS: dict[str, tuple[object, Callable[[Any], str]]] = {
    "single_node": (False, lambda _: "one node for all its workers"),
    "workers_per_node_max": (None, lambda most: f"at most {most} workers on a node"),
    "splits": ((), lambda splits: "; ".join(map(_split, splits))),
    "conditions": (ANY_NODE, group_condition_words),
    "spread": ((), lambda spread: "; ".join(f"{spread_words(one)} by {one.level}" for one in spread)),
}
"""What a group may ask -> the value that asks nothing, and what a value asks in words."""


def fits(q: Question, beside: Beside) -> bool:
    """Return whether the job, or what does not run of it, fits; raises ``OutOfTime`` if that is not known."""
    q.deadline.check("room for the job was looked for")
    if not q.is_joint:
        return fit(q.room(beside), q.requirements, q.deadline) is not None
    options = SolveOptions(time_limit_s=q.deadline.left_s)
    return fits_by_model(q.round.states[beside], q.number, q.tree, q.by.solve, options, q.deadline.at)


def conflict(q: Question, beside: Beside) -> tuple[Constraint, ...]:
    """Return rules of a job that does not fit which cannot hold together, none of which can be left out."""
    if not q.is_joint:
        return constraints(conflicting(q.room(beside), q.requirements, q.deadline), q.requirements, q.job)

    def fits_without(rules: Sequence[tuple[Constraint, Edit]]) -> bool:
        jobs = q.instance.jobs
        for _, edit in rules:
            jobs = tuple(map(edit, jobs))
        job = next(job for job in jobs if job.id == q.job.id)
        return fits(Question(q.instance.model_copy(update={"jobs": jobs}), q.plan, job, q.by), beside)

    return tuple(constraint for constraint, _ in irreducible(list(joint_rules(q)), fits_without))


def irreducible(rules: Sequence[T], fits_without: Callable[[list[T]], bool]) -> list[T]:
    """
    Return rules that cannot hold together, while without any one of them the job fits.

    Found by deletion: one after the other is dropped for good if the job still does not fit. Those outside the set may
    be dropped: it is infeasible by itself.
    """
    kept: list[T] = []
    dropped: list[T] = []
    for rule in rules:
        (kept if fits_without([*dropped, rule]) else dropped).append(rule)
    return kept


def conflicting(
    room: FreeCapacity, requirements: Sequence[Requirement], deadline: Deadline = FOREVER
) -> tuple[str, ...]:
    """
    Return groups of constraints that cannot hold together in ``room``, into which none of ``requirements`` fits.

    A group is dropped from all options at once.
    """
    kept = irreducible(
        rules_in_order(requirements), lambda dropped: fit(room, _without(requirements, dropped), deadline) is not None
    )
    return tuple(reversed(kept))


def rules_in_order(requirements: Sequence[Requirement]) -> list[str]:
    """Return the groups of constraints of some requirements, in the order in which a conflict does without them."""
    order = [group.split(":")[0] for group in dict.fromkeys(WITHOUT)]
    groups = {group for requirement in requirements for group in requirement.groups}
    return sorted(groups, key=lambda group: (order.index(group.split(":")[0]), group))


def _without(requirements: Sequence[Requirement], groups: Sequence[str]) -> list[Requirement]:
    out = []
    for requirement in requirements:
        for group in groups:
            requirement = requirement.without(group)
        out.append(requirement)
    return out


def joint_rules(q: Question) -> Iterator[tuple[Constraint, Edit]]:
    """Yield what a job asks of nodes and of other jobs, and its groups of each other, with the edit that drops it."""
    job = q.job

    def own(group: str, asks: str, changed: Callable[[Job], dict[str, Any]], name: str = "") -> tuple[Constraint, Edit]:
        def edit(one: Job) -> Job:
            return one.model_copy(update=changed(one)) if one.id == job.id else one

        return Constraint(group=group, name=name or constraint_name(group), asks=asks), edit

    texts = condition_words(job)
    for field, free in ANY_NODE:
        if field in texts and getattr(job.conditions, field) != free:
            yield own(field, texts[field], partial(_asking, {field: free}))
    if any(node.taints for node in q.instance.cluster.nodes):
        yield own("taints", texts["taints"], partial(_asking, {"tolerations": (Toleration(operator="Exists"),)}))
    for relation in job.relations:
        if relation.weight is None:
            name = f"relation {relation.kind} by {relation.level}"
            yield own("relations", relation.text, partial(_without_relation, relation), name)
    for option in job.options:
        for group in _groups(option):
            for field, (free, words) in OF_GROUPS.items():
                if (asks := getattr(group, field)) != free:
                    name = f"{field.replace('_', ' ')} of {group.id!r}"
                    change = partial(_with_group, option.id, group.id, {field: free})
                    yield own(f"{group.id}:{field}", words(asks), change, name)
    others = {text for one in q.instance.jobs if one.id != job.id for text in _apart_from(one, job)}
    if others:
        held = Constraint(group="relations_of_others", name="relations of other jobs", asks="; ".join(sorted(others)))
        yield held, lambda one: one if one.id == job.id else _beside(one, job)


def _asking(fields: dict[str, Any], job: Job) -> dict[str, Any]:
    return {"conditions": job.with_conditions(**fields).conditions}


def _without_relation(gone: Relation, job: Job) -> dict[str, Any]:
    return {"relations": tuple(one for one in job.relations if one != gone)}


def _apart_from(one: Job, job: Job) -> list[str]:
    """Return the hard relations by which a job is apart from another."""
    return [r.text for r in one.relations if (r.kind, r.weight) == ("apart", None) and r.selects(job.labels)]


def _beside(one: Job, job: Job) -> Job:
    """Return a job that is not apart from another."""
    kept = tuple(relation for relation in one.relations if relation.kind == "near" or not relation.selects(job.labels))
    return one if kept == one.relations else one.model_copy(update={"relations": kept})


def _groups(group: Group) -> Iterator[Group]:
    yield group
    for part in group.groups:
        yield from _groups(part)


def _with_group(option_id: str, group_id: str, fields: dict[str, Any], job: Job) -> dict[str, Any]:
    """Return a job's options with fields of one group changed."""

    def edited(group: Group) -> Group:
        own = fields if group.id == group_id else {}
        return group.model_copy(update={**own, "groups": tuple(map(edited, group.groups))})

    return {"options": tuple(edited(option) if option.id == option_id else option for option in job.options)}


def _split(split: Split) -> str:
    return f"{split.domains} x {split.level}" + ("" if split.workers is None else f", {split.workers} workers in each")
