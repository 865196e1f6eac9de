"""The remedies of a job as steps over the round after the plan, and single changes after which it fits, each tried."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from placeopt.edits import AnyStep, apply, change_of
from placeopt.explain.changes import by_steps, single_changes
from placeopt.explain.question import Beside, Question, with_policy
from placeopt.explain.records import Constraint, DomainsMin, SingleChange, WorkersMax
from placeopt.explain.rules import fits, joint_rules
from placeopt.model import Job, Option, Split

Steps = tuple[AnyStep, ...]


def with_workers(job: Job, remedy: WorkersMax) -> Steps:
    """Return the steps that give an option fewer workers; a split into equal parts stays one."""
    number = remedy.workers

    def fewer(option: Option) -> dict[str, Any]:
        splits = tuple(_of(split, number) for split in option.splits)
        return {"workers": number, "workers_min": None, "value_per_worker": 0, "splits": splits}

    return _with_options(job, fewer, remedy.option)


def with_domains(job: Job, remedy: DomainsMin) -> Steps:
    """Return the steps that split an option over another number of domains."""

    def other(option: Option) -> dict[str, Any]:
        splits = (
            _of(split.model_copy(update={"domains": remedy.domains}), option.workers)
            if split.level == remedy.level
            else split
            for split in option.splits
        )
        return {"splits": tuple(splits)}

    return _with_options(job, other, remedy.option)


def together(job: Job, level: str) -> Steps:
    """Return the steps that keep all workers in one domain of a level, whatever the job says of nodes and splits."""
    splits = () if level in ("node", "cluster") else (Split(level=level, domains=1),)
    return _with_options(job, lambda _: {"single_node": level == "node", "splits": splits, "spread": ()})


def helping(q: Question, beside: Beside, held: Sequence[Constraint]) -> Iterator[SingleChange]:
    """
    Yield single changes after which a job fits beside others, each tried; raises ``OutOfTime``.

    ``held``: The constraints that cannot hold together. Only changes of one of them, and of hardware, can help a job of
    workers alike. Jobs with groups or relations also leave out one rule of their own.
    """
    instance = q.instance.model_copy(update={"policy": q.plan.policy.values})
    groups = {constraint.group for constraint in held}
    changes = list(single_changes(instance, q.plan))
    if q.is_joint and not q.in_part:  # what runs of it would stop
        without = ((rule, edit(q.job)) for rule, edit in joint_rules(q) if rule in held)
        changes += [
            by_steps(f"without its {rule.name}", rule.group, change_of(q.job, job))
            for rule, job in without
            if job != q.job
        ]
    for change in changes:
        if q.is_joint or change.group is None or change.group in groups:
            edited = apply(instance, change.steps)
            job = next(job for job in edited.jobs if job.id == q.job.id)
            if fits(Question(edited, with_policy(q.plan, edited.policy), job, q.by), beside):
                yield change


def _with_options(job: Job, fields: Callable[[Option], dict[str, Any]], option: str | None = None) -> Steps:
    options = tuple(one.model_copy(update=fields(one)) if option in (None, one.id) else one for one in job.options)
    most = max(one.most_workers for one in options)
    edges = tuple(edge for edge in job.communication.edges if max(edge.ranks) < most)
    communication = job.communication.model_copy(update={"edges": edges})
    return (change_of(job, job.model_copy(update={"options": options, "communication": communication})),)


def _of(split: Split, workers: int) -> Split:
    """Return a split that states its workers for another number of all workers."""
    return split if split.workers is None else split.model_copy(update={"workers": workers // split.domains})
