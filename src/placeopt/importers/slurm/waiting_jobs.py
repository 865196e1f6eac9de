"""Slurm's jobs that wait, or were told where to start: exactly as they asked, or left out by name."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from placeopt.documents.faults import make_record
from placeopt.errors import BadInput
from placeopt.importers.json_entry import JsonEntry
from placeopt.importers.observed_round import ObservedJob, ObservedWorker, origin_of
from placeopt.importers.slurm.blocks import block_rules
from placeopt.importers.slurm.eligibility import node_fields, nodes_of, why_not_started
from placeopt.importers.slurm.fields import parse_tasks
from placeopt.importers.slurm.job_context import JobContext, make_job, unreadable_job
from placeopt.importers.slurm.job_requests import (
    JobLeftOut,
    WorkerShape,
    is_exclusive,
    milliseconds,
    reason_of,
    requested_shapes,
    slurm_number,
    whole_nodes,
)
from placeopt.importers.slurm.nodes import FOR_ALL
from placeopt.model import Demand, Job, Option, Split
from placeopt.model.base import MAX_JOBS

NO_SWITCHES = "This Slurm does not list --switches: workers of waiting jobs may lie under any."
NO_MEMORY = "Waiting jobs for which no memory is stated (--mem=0 too) count as asking for none."


def waiting_jobs(context: JobContext, entry: JsonEntry, name: str, running_tasks: int) -> Iterator[ObservedJob]:
    """Yield a waiting job, or one for each task of an array, of which ``running_tasks`` run; none if it is left out."""
    names: list[str] = [name]
    over: Collection[str] = ()
    try:
        names, over = _tasks(context, entry, name, running_tasks)
        if reason := _why_not(context, entry):
            raise JobLeftOut(reason)
        job = _as_requested(context, entry, name)
    except (JobLeftOut, BadInput) as error:
        for task_name in names:
            context.notes.leave_out(reason_of(entry, error), task_name)
        return
    called, priority = entry.text("name", "") or name, slurm_number(entry, "priority") or 0
    for task_name in names:
        if task_name in over:
            context.notes.leave_out("tasks of an array over its limit of tasks at once", task_name)
            continue
        own = {"id": task_name, "origin": origin_of(called, task_name)}
        task_job = job if task_name == name else job.model_copy(update=own)
        yield ObservedJob(task_job, priority=priority, where=entry.where)


def starting_job(context: JobContext, entry: JsonEntry, name: str, nodes: Sequence[str]) -> ObservedJob:
    """Return a job that starts on these nodes as running there; one that cannot be read holds all of them."""
    try:
        job = _as_requested(context, entry, name)
        option = next((option for option in job.options if option.workers == len(nodes)), None)
        if option is None:
            raise JobLeftOut("starts with another number of workers than it asks for")
        workers = tuple(map(ObservedWorker, nodes))
        return ObservedJob(job.model_copy(update={"options": (option,)}), workers, where=entry.where)
    except (JobLeftOut, BadInput) as error:
        return unreadable_job(entry, name, nodes, error)


def _why_not(context: JobContext, entry: JsonEntry) -> str | None:
    """Return why free capacity alone would not start a job."""
    reason = why_not_started(entry.text("state_reason", "None"), entry.text("state_description", ""))
    if reason is not None and not (context.licenses is not None and reason == "waiting for Licenses"):
        return reason
    return "waiting, held (priority 0)" if entry.flag("hold") or slurm_number(entry, "priority") == 0 else None


def _tasks(context: JobContext, entry: JsonEntry, name: str, running: int) -> tuple[list[str], Collection[str]]:
    """Return the names of the tasks that an entry stands for, and those of the last, over the array's limit."""
    text = entry.text("array_task_string", "")
    if not text or slurm_number(entry, "array_task_id") is not None:
        return [name], ()
    tasks = entry.parsed("array_task_string", parse_tasks)
    if len(tasks) > MAX_JOBS:
        raise entry.bad("array_task_string", f"at most {MAX_JOBS} tasks")
    array = slurm_number(entry, "array_job_id") or slurm_number(entry, "job_id")
    names = [f"{array}_{index}" for index in tasks]
    if text.endswith("..."):
        reason = "tasks of an array that Slurm cut off its list (SLURM_BITSTR_LEN)"
        context.notes.leave_out(reason, f"{array}_...")
    listed_limit = re.search(r"%([0-9]{1,9})\Z", text)
    limit = slurm_number(entry, "array_max_tasks") or (int(listed_limit[1]) if listed_limit else 0)
    return names, set(names[max(0, limit - running) :]) if limit else ()


def _as_requested(context: JobContext, entry: JsonEntry, name: str) -> Job:
    """Return the job as it asks; raises `JobLeftOut` or `BadInput` where that cannot be read."""
    if field := context.unread.of(entry):
        raise JobLeftOut(f"states {field[:60]}, which is not read")
    shapes, exclusive = requested_shapes(entry), is_exclusive(entry)
    where = node_fields(
        entry,
        context.nodes,
        one_node=all(shape.workers == 1 or shape.nodes == 1 for shape in shapes),
        counts={shape.workers if shape.alone or shape.workers == 1 else shape.nodes for shape in shapes},
    )
    if exclusive:
        nodes = {(node.models, node.cpus) for node in nodes_of(where, context.nodes)}
        if len(nodes) != 1:
            raise JobLeftOut("--exclusive where nodes are of several shapes, or none")
        shapes = whole_nodes(shapes, *nodes.pop())
    if kept := context.kept_cpus:
        beside = [(FOR_ALL, max(0, shape.cpus - shape.gpus * kept)) for shape in shapes]
        shapes = [replace(one, named=(*one.named, cpus)) for one, cpus in zip(shapes, beside, strict=True)]
    if "required_switches" not in entry and max(shape.workers for shape in shapes) > 1:
        context.notes.assume(NO_SWITCHES)
    if not all(shape.memory_mib for shape in shapes):
        context.notes.assume(NO_MEMORY)
    rules = block_rules(entry, shapes, context.cluster)
    options = tuple(
        _option(
            context,
            entry,
            shape,
            id="default" if len(shapes) == 1 else f"nodes{shape.nodes or shape.workers}",
            splits=(*((Split(level="node", domains=shape.nodes),) if shape.nodes is not None else ()), *rule.splits),
            spread=rule.spread,
        )
        for shape, rule in zip(shapes, rules, strict=True)
    )
    job = make_job(entry, name, options, where)
    return job if context.licenses is None else context.licenses.waiting(entry, job)


def _option(context: JobContext, entry: JsonEntry, shape: WorkerShape, **where: object) -> Option:
    demand = make_record(
        Demand,
        entry.where,
        gpus=shape.gpus,
        gpu_models=shape.models,
        cpu_millicores=1000 * shape.cpus,
        memory_mib=shape.memory_mib,
        resources=dict(shape.named),
    )
    return make_record(
        Option,
        entry.where,
        workers=shape.workers,
        demand=demand,
        workers_per_node_max=1 if shape.alone and shape.workers > 1 else shape.per_node,
        value=context.value(entry, shape.workers * shape.gpus),
        run_time_ms=milliseconds(entry, "time_limit", 60_000),
        **where,
    )
