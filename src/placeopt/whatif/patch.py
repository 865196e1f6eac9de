"""Patches: steps carried out on a copy of an instance."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, TypeVar

from placeopt.arguments import checked
from placeopt.documents.documents import loads
from placeopt.errors import BadInput
from placeopt.model import Instance, Node, Queue
from placeopt.model.base import Record
from placeopt.whatif import steps
from placeopt.whatif.domain_levels import INSIDE, joined, lost_hardware
from placeopt.whatif.instance_edit import (
    Patched,
    edit_cluster,
    edit_instance,
    job_arriving_at,
    requested_gpu_milli,
    without_gpus,
    without_nodes,
    without_running,
)
from placeopt.whatif.steps import Patch, Step

R = TypeVar("R", bound=Record)


@checked
def apply_patch(instance: Instance, *patches: Patch) -> Patched:
    """
    Carry out the steps of all patches, one after the other.

    Parameters
    ----------
    instance
        The round to change; it stays as it is.
    *patches
        Lists of steps.

    Returns
    -------
    Patched
        The changed round, and what the steps displaced.

    Raises
    ------
    BadInput
        If a step names something unknown, or leads to an instance that contradicts itself; names patch and step.
    """
    try:
        made = _apply(Patched(instance, checked=False), patches)
        return replace(made, instance=edit_instance(made.instance, cluster=edit_cluster(made.instance.cluster)))
    except (BadInput, LookupError, TypeError, ValueError):  # check every step, so that the one at fault is named
        return _apply(Patched(instance), patches)


def _apply(patched: Patched, patches: Iterable[Patch]) -> Patched:
    for patch in patches:
        for number, step in enumerate(patch.steps):
            try:
                patched = apply_step(patched, step)
            except BadInput as error:
                raise BadInput(f"{patch.name}: steps[{number}] ({step.do}): {error}") from None
    return patched


def apply_step(patched: Patched, step: Step) -> Patched:
    """Carry out one step; raises `BadInput` where that is impossible."""
    return ACTIONS[type(step)](patched, step)


def _add_machines(before: Patched, step: steps.AddMachines) -> Patched:
    machines = (*before.instance.cluster.machines, *step.machines)
    return before.edited(cluster=before.cluster_with(machines=machines))


def _add_nodes(before: Patched, step: steps.AddNodes) -> Patched:
    cluster = before.instance.cluster
    model = None
    if step.like is not None:
        model = next((node for node in cluster.nodes if node.id == step.like), None)
        if model is None:
            raise BadInput(f"like: no node {step.like!r}")
    machine = step.machine or (model.machine if model else None)
    if machine is None:
        raise BadInput("machine: expected a machine type, or 'like' with a node to copy")
    _refuse_unknown_machine(before.instance, machine)
    model = model or cluster.node_of_type(machine)
    stated = {"domain": step.domain, "labels": step.labels}
    fields = {"machine": machine, **{name: value for name, value in stated.items() if value is not None}}
    used = {node.id for node in cluster.nodes}
    ids = [f"{step.prefix}-{i}" for i in range(step.count)]
    clash = next((name for name in ids if name in used), None)
    if clash is not None:
        raise BadInput(f"prefix: a node {clash!r} is there already; choose another prefix")
    nodes = (*cluster.nodes, *(Node(**{**dict(model.copied(name)), **fields}) for name in ids))
    return before.with_nodes(nodes, added=ids)


def _fail(before: Patched, step: steps.Fail) -> Patched:
    losses = lost_hardware(before.instance, step.level)
    for name in step.domains:
        if name not in losses:
            kind = "GPUs" if step.level in INSIDE else "nodes"
            raise BadInput(f"domains: no {step.level} {name!r} with {kind}; there are: {_some(losses)}")
    lost = joined(losses[name] for name in step.domains)
    return without_gpus(before, lost.gpus) if lost.gpus else without_nodes(before, lost.nodes)


def _replace_nodes(before: Patched, step: steps.ReplaceNodes) -> Patched:
    instance = before.instance
    chosen = set(step.nodes)
    there = {node.id for node in instance.cluster.nodes}
    missing = next((name for name in step.nodes if name not in there), None)
    if missing is not None:
        raise BadInput(f"nodes: no node {missing!r}")
    if step.of is not None:
        chosen |= {node.id for node in instance.cluster.nodes if node.machine == step.of}
    if not chosen:
        raise BadInput(f"no node is of machine type {step.of!r}" if step.of else "expected 'nodes' or 'of'")
    _refuse_unknown_machine(instance, step.machine)
    chosen &= {node.id for node in instance.cluster.nodes if node.machine != step.machine}
    if not chosen:
        raise BadInput(f"machine: the nodes are of type {step.machine!r} already")
    displaced = [held.job for held in instance.running if any(a.node in chosen for a in held.assignments)]
    nodes = [
        node.model_copy(update={"machine": step.machine}) if node.id in chosen else node
        for node in instance.cluster.nodes
    ]
    return before.with_nodes(nodes, displaced)


def _refuse_unknown_machine(instance: Instance, machine: str) -> None:
    types = [machine.id for machine in instance.cluster.machines]
    if machine not in types:
        raise BadInput(
            f"machine: no machine type {machine!r}; there are: {_some(types)}; a step add_machines brings new ones"
        )


def _set_policy(before: Patched, step: steps.SetPolicy) -> Patched:
    return before.edited(policy=merged(before.instance.policy, step.fields, "fields"))


def _set_quota(before: Patched, step: steps.SetQuota) -> Patched:
    policy = before.instance.policy
    if all(queue.id != step.queue for queue in policy.queues):
        raise BadInput(f"queue: no queue {step.queue!r}; there are: {_some(queue.id for queue in policy.queues)}")
    queues = tuple(_with_quota(queue, step) if queue.id == step.queue else queue for queue in policy.queues)
    return before.edited(policy=policy.model_copy(update={"queues": queues}))


def _with_quota(queue: Queue, step: steps.SetQuota) -> Queue:
    new = {}
    for name, stated in (("quota", step.quota), ("borrow", step.borrow)):
        if stated is not None:
            amounts = {resource: getattr(stated, resource) for resource in stated.model_fields_set}
            new[name] = getattr(queue, name).model_copy(update=amounts)
    return queue.model_copy(update=new)


def _change_job(before: Patched, step: steps.ChangeJob) -> Patched:
    instance = before.instance
    old = next((job for job in instance.jobs if job.id == step.job), None)
    if old is None:
        raise BadInput(f"job: no job {step.job!r}")
    new = merged(old, step.fields, "fields")
    if new.id != old.id:
        raise BadInput("fields.id: a job keeps its id")
    jobs = tuple(new if job.id == step.job else job for job in instance.jobs)
    displaced = [held.job for held in instance.running if held.job == step.job]
    return before.edited(displaced, jobs=jobs)


def _add_jobs(before: Patched, step: steps.AddJobs) -> Patched:
    return before.edited(jobs=(*before.instance.jobs, *step.jobs))


def _remove_jobs(before: Patched, step: steps.RemoveJobs) -> Patched:
    instance, gone = before.instance, set(step.jobs)
    there = {job.id for job in instance.jobs}
    missing = next((name for name in step.jobs if name not in there), None)
    if missing is not None:
        raise BadInput(f"jobs: no job {missing!r}")
    jobs = tuple(job for job in instance.jobs if job.id not in gone)
    return before.edited(jobs=jobs, running=without_running(instance, gone))


def _scale_demand(before: Patched, step: steps.ScaleDemand) -> Patched:
    instance = before.instance
    target = 10 * step.percent * sum(instance.cluster.gpus_by_node.values())  # GPU-milli
    runs = {held.job for held in instance.running}
    waiting = [job for job in instance.jobs if job.id not in runs]
    if not waiting:
        raise BadInput("no waiting jobs to draw from")
    draw = random.Random(step.seed)  # noqa: S311 - repeatable, not secret
    jobs = list(instance.jobs)
    asked = sum(map(requested_gpu_milli, jobs))
    if asked > target:
        draw.shuffle(waiting)
        gone = set()
        for job in waiting:
            if asked <= target:
                break
            gone.add(job.id)
            asked -= requested_gpu_milli(job)
        jobs = [job for job in jobs if job.id not in gone]
    elif not any(map(requested_gpu_milli, waiting)):
        raise BadInput("the waiting jobs ask for no GPUs; their demand cannot be scaled")
    used, number = {job.id for job in jobs}, 0
    while asked <= target:
        job = draw.choice(waiting)
        asked += requested_gpu_milli(job)
        if asked > target:
            break
        while f"{job.id}+{number}" in used:
            number += 1
        jobs.append(job.model_copy(update={"id": f"{job.id}+{number}"}))
        number += 1
    return before.edited(jobs=tuple(jobs))


def _scale_arrivals(before: Patched, step: steps.ScaleArrivals) -> Patched:
    jobs = tuple(job_arriving_at(job, 100 * job.arrival_ms // step.percent) for job in before.instance.jobs)
    return before.edited(jobs=jobs)


ACTIONS: dict[type, Callable[[Patched, Any], Patched]] = {
    steps.AddMachines: _add_machines,
    steps.AddNodes: _add_nodes,
    steps.RemoveNodes: lambda before, do: without_nodes(before, do.nodes),
    steps.Fail: _fail,
    steps.ReplaceNodes: _replace_nodes,
    steps.SetPolicy: _set_policy,
    steps.SetQuota: _set_quota,
    steps.ChangeJob: _change_job,
    steps.AddJobs: _add_jobs,
    steps.RemoveJobs: _remove_jobs,
    steps.ScaleDemand: _scale_demand,
    steps.ScaleArrivals: _scale_arrivals,
}


def merged(record: R, fields: dict[str, Any], where: str) -> R:
    """Return a record with fields changed, records inside it merged; raises `BadInput` as reading a file would."""
    return loads(type(record), json.dumps(_merge(record.model_dump(mode="json", by_alias=True), fields)), source=where)


def _merge(old: Any, new: Any) -> Any:
    if isinstance(old, dict) and isinstance(new, dict):
        return {**old, **{name: _merge(old.get(name), value) for name, value in new.items()}}
    return new


def _some(names: Iterable[str], most: int = 8) -> str:
    shown = list(names)
    return ", ".join(shown[:most]) + (f" and {len(shown) - most:,} more" if len(shown) > most else "") or "none"
