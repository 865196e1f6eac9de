"""
Why a job of groups, or with relations to others, waits: whether it fits beside the plan, or alone.

And which of its rules cannot hold together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from placeopt.errors import OutOfTime
from placeopt.explain.question import Question, case_beside
from placeopt.explain.records import Constraint, Explanation
from placeopt.explain.words import condition_words, constraint_name, group_condition_words, listed, spread_words
from placeopt.model import Group, Instance, Job, Relation, Split, Toleration
from placeopt.model.plan import UnplacedReason
from placeopt.problem import State
from placeopt.solvers.result import SolveOptions
from placeopt.solving.tree_fit import fits_by_model

Edit = Callable[[Instance], Instance]
CONDITIONS: dict[str, Any] = {"node_selector": {}, "node_affinity": (), "nodes_allowed": None, "nodes_excluded": ()}
"""What a job may ask of nodes -> the value that asks nothing."""


def explain_tree(q: Question) -> Explanation:
    """Explain a job of groups, or with relations; what its place costs, and which other is best, is not answered."""
    if q.case.number in q.case.placed:
        return Explanation(
            job=q.case.job.id,
            status="placed",
            detail="is placed; other places of jobs with groups or relations are not compared",
            proven=False,
            seconds=q.seconds(),
        )
    reason, detail = (None, "waits") if q.planned is None else (q.planned.reason, q.planned.detail)
    conflict: tuple[Constraint, ...] | None = None
    try:
        reason, detail, conflict = _reason(q)
    except OutOfTime:
        detail += " (as the plan says; there was no time to verify it)"
    part = "runs in part; the rest " if q.case.tree is not None and q.case.tree.runs else ""
    return Explanation(
        job=q.case.job.id,
        status="waiting",
        reason=reason,
        detail=part + detail,
        plan_reason=None if q.planned is None else q.planned.reason,
        beside="running" if reason == "conflict" else "plan",
        conflict=conflict or (),
        proven=conflict is not None,
        seconds=q.seconds(),
    )


def _reason(q: Question) -> tuple[UnplacedReason, str, tuple[Constraint, ...]]:
    if _fits(q, q.instance, lambda case: case.beside_plan()):
        return "not_reached", "fits beside the plan; the search did not get to it", ()
    if _fits(q, q.instance, lambda case: case.beside_staying()):
        held = _conflict(q, lambda case: case.beside_plan())
        return "outvoted", "fits alone, but not beside the plan", held
    held = _conflict(q, lambda case: case.beside_staying())
    names = [constraint.name for constraint in held]
    together = "by {} alone" if len(names) == 1 else "{} cannot hold together"
    what = together.format(listed(names)) if names else "its workers do not fit, whatever their rules"
    return "conflict", f"does not fit beside the running jobs that must stay: {what}", held


def _fits(q: Question, instance: Instance, state_of: Callable[..., State]) -> bool:
    """Return whether the job fits in a state of a round like the given one; raises ``OutOfTime`` if not known."""
    q.deadline.check("the job's workers were laid")
    case = q.case
    if instance is not q.instance:
        job = next(job for job in instance.jobs if job.id == case.job.id)
        case = case_beside(instance, q.plan, job)
    options = SolveOptions(time_limit_s=q.deadline.left_s)
    found = fits_by_model(state_of(case), case.number, case.tree, q.solve, options, q.deadline.at)
    if found is None:
        raise OutOfTime("no time left to lay the job's workers")
    return found


def _conflict(q: Question, state_of: Callable[..., State]) -> tuple[Constraint, ...]:
    """Return rules of the job that cannot hold together, none of which can be left out."""
    instance, held = q.instance, list[Constraint]()
    for constraint, edit in _rules(q):
        without = edit(instance)
        if _fits(q, without, state_of):
            held.append(constraint)
        else:
            instance = without
    return tuple(held)


def _rules(q: Question) -> Iterator[tuple[Constraint, Edit]]:
    """Yield what a job asks of nodes and of other jobs, and its groups of each other, with the edit that drops it."""
    job = q.case.job
    for constraint, edit in _own_rules(job, tainted=any(node.taints for node in q.instance.cluster.nodes)):
        yield constraint, partial(_edit_job, job_id=job.id, edit=edit)
    others = {
        relation.text
        for one in q.instance.jobs
        for relation in one.relations
        if one.id != job.id and (relation.kind, relation.weight) == ("apart", None) and _selects(relation, job)
    }
    if others:
        held = Constraint(group="relations_of_others", name="relations of other jobs", asks="; ".join(sorted(others)))
        yield held, partial(_without_others, job_id=job.id)


def _own_rules(job: Job, *, tainted: bool) -> Iterator[tuple[Constraint, Callable[[Job], Job]]]:
    """Yield the rules of a job's own record; ``tainted``: whether some node has taints."""
    texts = condition_words(job)
    for field, free in CONDITIONS.items():
        if getattr(job, field) != free:
            yield _rule(field, texts[field]), partial(_with, {field: free})
    if tainted:
        yield _rule("taints", texts["taints"]), partial(_with, {"tolerations": (Toleration(operator="Exists"),)})
    for relation in job.relations:
        if relation.weight is None:
            held = Constraint(
                group="relations", name=f"relation {relation.kind} by {relation.level}", asks=relation.text
            )
            yield held, partial(_without_relation, relation=relation)
    for option in job.options:
        for group in _groups(option):
            for field, asks in _asked(group):
                name = f"{field.replace('_', ' ')} of {group.id!r}"
                held = Constraint(group=f"{group.id}:{field}", name=name, asks=asks)
                yield held, partial(_without, option_id=option.id, group_id=group.id, field=field)


def _selects(relation: Relation, job: Job) -> bool:
    return all(expression.accepts(job.labels.get(expression.key)) for expression in relation.selector)


def _edit_job(instance: Instance, job_id: str, edit: Callable[[Job], Job]) -> Instance:
    jobs = tuple(edit(job) if job.id == job_id else job for job in instance.jobs)
    return instance.model_copy(update={"jobs": jobs})


def _without_others(instance: Instance, job_id: str) -> Instance:
    """Return the round in which no other job is apart from this one."""
    jobs = list(instance.jobs)
    own = next(job for job in jobs if job.id == job_id)
    for i, job in enumerate(jobs):
        kept = tuple(one for one in job.relations if one.kind == "near" or not _selects(one, own))
        if job.id != job_id and kept != job.relations:
            jobs[i] = job.model_copy(update={"relations": kept})
    return instance.model_copy(update={"jobs": tuple(jobs)})


def _without_relation(job: Job, relation: Relation) -> Job:
    return job.model_copy(update={"relations": tuple(one for one in job.relations if one != relation)})


def _with(fields: dict[str, Any], job: Job) -> Job:
    return job.model_copy(update=fields)


def _rule(group: str, asks: str) -> Constraint:
    return Constraint(group=group, name=constraint_name(group), asks=asks)


def _groups(group: Group) -> Iterator[Group]:
    yield group
    for part in group.groups:
        yield from _groups(part)


def _asked(group: Group) -> Iterator[tuple[str, str]]:
    if group.single_node:
        yield "single_node", "one node for all its workers"
    if group.workers_per_node_max is not None:
        yield "workers_per_node_max", f"at most {group.workers_per_node_max} workers on a node"
    if group.splits:
        yield "splits", "; ".join(map(_split, group.splits))
    if group.conditions is not None:
        yield "conditions", group_condition_words(group.conditions)
    if group.spread:
        yield "spread", "; ".join(f"{spread_words(spread)} by {spread.level}" for spread in group.spread)


def _split(split: Split) -> str:
    return f"{split.domains} x {split.level}" + ("" if split.workers is None else f", {split.workers} workers in each")


def _without(job: Job, option_id: str, group_id: str, field: str) -> Job:
    dropped = {"single_node": False, "workers_per_node_max": None, "splits": (), "spread": (), "conditions": None}[
        field
    ]

    def edited(group: Group) -> Group:
        own = {field: dropped} if group.id == group_id else {}
        return group.model_copy(update={**own, "groups": tuple(edited(part) for part in group.groups)})

    options = tuple(edited(option) if option.id == option_id else option for option in job.options)
    return job.model_copy(update={"options": options})
