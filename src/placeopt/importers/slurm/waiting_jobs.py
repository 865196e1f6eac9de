"""Slurm's jobs that wait, or were told where to start: exactly as they asked, or left out by name."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from itertools import islice, product

from placeopt.documents.faults import make_record
from placeopt.errors import BadInput
from placeopt.importers.json_entry import JsonEntry
from placeopt.importers.observed_round import ObservedJob, ObservedWorker, origin_of
from placeopt.importers.slurm.blocks import in_blocks
from placeopt.importers.slurm.fields import parse_indices, parse_tasks
from placeopt.importers.slurm.job_requests import (
    MAX_RANGE,
    JobLeftOut,
    WaitingRequest,
    leave_out,
    milliseconds,
    node_count,
    slurm_number,
    whole_nodes,
    with_amounts,
)
from placeopt.importers.slurm.jobs import (
    JobContext,
    check_startable,
    job_name,
    make_job,
    matching_sets,
    node_conditions,
    nodes_of,
    unreadable_job,
)
from placeopt.importers.slurm.nodes import FOR_ALL
from placeopt.model import Group, Job, NodeConditions, Option
from placeopt.model.base import MAX_JOBS

NO_SWITCHES = "This Slurm does not list --switches: workers of waiting jobs may lie under any."
NO_MEMORY = "Waiting jobs for which no memory is stated (--mem=0 too) count as asking for none."
ONE_KIND = "Waiting jobs with --exclusive have nodes of one kind each."


def waiting_jobs(context: JobContext, entry: JsonEntry, name: str, running_tasks: int) -> Iterator[ObservedJob]:
    """Yield a waiting job, or one for each task of an array, of which ``running_tasks`` run; none if it is left out."""
    names: list[str] = [name]
    over: Collection[str] = ()
    try:
        names, over = _tasks(context, entry, name, running_tasks)
        check_startable(entry, licenses=context.licenses.listed)
        job = _as_requested(context, entry, name)
    except (JobLeftOut, BadInput) as error:
        leave_out(context.notes, entry, error, names)
        return
    called, priority = entry.text("name", "") or name, slurm_number(entry, "priority") or 0
    for task_name in names:
        if task_name in over:
            context.notes.not_eligible("tasks of an array over its limit of tasks at once", task_name)
            continue
        own = {"id": task_name, "origin": origin_of(called, task_name)}
        task_job = job if task_name == name else job.model_copy(update=own)
        yield ObservedJob(task_job, priority=priority, where=entry.where)


def het_jobs(context: JobContext, entries: Sequence[JsonEntry]) -> Iterator[ObservedJob]:
    """
    Yield the heterogeneous job whose components wait: a group for each, on nodes of its own as Slurm starts them.

    None if one of them is left out, or has several workers on a node, which one rule for all nodes cannot state.
    """
    if not entries:  # stated by another component
        return
    first, priority = entries[0], slurm_number(entries[0], "priority") or 0
    try:
        if len(first.parsed("het_job_id_set", parse_indices)) > len(entries):
            raise JobLeftOut("a component of the heterogeneous job does not wait")
        if context.cluster.block_sizes:
            raise JobLeftOut("a heterogeneous job where a topology has blocks or several roots")
        ways = list(islice(product(*(_components(context, entry) for entry in entries)), MAX_RANGE + 1))
        if len(ways) > MAX_RANGE:
            raise JobLeftOut("a heterogeneous job that may run in too many ways")
        run_time_ms = max(milliseconds(entry, "time_limit", 60_000) or 0 for entry in entries) or None
        options = []
        for number, groups in enumerate(ways):
            value = sum(context.value(first, group.workers, group.demand) for group in groups)
            fields = {"id": f"way{number}", "value": value, "run_time_ms": run_time_ms}
            options.append(make_record(Option, first.where, groups=groups, workers_per_node_max=1, **fields))
        yield ObservedJob(make_job(first, job_name(first), tuple(options)), priority=priority, where=first.where)
    except (JobLeftOut, BadInput) as error:
        at = next((entry for entry in entries if f"{entry.where}." in str(error)), first)
        leave_out(context.notes, at, error, map(job_name, entries))


def _components(context: JobContext, entry: JsonEntry) -> list[Group]:
    """Return the alternative groups of a component of a heterogeneous job."""
    check_startable(entry, licenses=context.licenses.listed)
    options, where = _options(context, entry, frozenset(("het_job_id",)))
    groups = []
    for option in options:
        if where.nodes_allowed is not None or node_count(option) != option.workers:
            raise JobLeftOut("a heterogeneous job that names nodes, or has several workers on one")
        fields = {name: getattr(option, name) for name in Group.model_fields}
        groups.append(Group(**{**fields, "id": job_name(entry), "conditions": where & option.conditions}))
    return groups


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
        context.notes.leave_out("tasks of an array that Slurm cut off its list (SLURM_BITSTR_LEN)", f"{array}_...")
    listed_limit = re.search(r"%([0-9]{1,9})\Z", text)
    limit = slurm_number(entry, "array_max_tasks") or (int(listed_limit[1]) if listed_limit else 0)
    return names, set(names[max(0, limit - running) :]) if limit else ()


def _as_requested(context: JobContext, entry: JsonEntry, name: str) -> Job:
    """Return the job as it asks; raises `JobLeftOut` or `BadInput` where that cannot be read."""
    options, where = _options(context, entry)
    return make_job(entry, name, tuple(options), where)


def _options(
    context: JobContext, entry: JsonEntry, read: frozenset[str] = frozenset()
) -> tuple[list[Option], NodeConditions]:
    """
    Return the ways to run a job, and what it asks of its nodes.

    ``read``: Fields that the caller reads. Raises `JobLeftOut` or `BadInput` where a request cannot be read.
    """
    if field := context.unread.of(entry, read):
        raise JobLeftOut(f"states {field[:60]}, which is not read")
    asked = WaitingRequest(entry, context.shares)
    options = asked.options()
    numbers = {node_count(option) for option in options}
    constraint = entry.text("features", "")
    sets = matching_sets(constraint) if numbers != {1} else {}
    where = node_conditions(entry, context.nodes, "" if sets else constraint, numbers)
    if asked.exclusive:
        kinds = {shape.kind: (shape.cpus, shape.models) for shape, *_ in nodes_of(where, context.nodes)}
        options = whole_nodes(options, kinds)
        if len(kinds) > 1:
            context.whole_kinds.update(kinds)
            context.notes.assume(ONE_KIND)
    if kept := context.kept_cpus:
        beside = [max(0, one.demand.cpu_millicores // 1000 - one.demand.gpus * kept) for one in options]
        options = [with_amounts(one, {FOR_ALL: cpus}) for one, cpus in zip(options, beside, strict=True)]
    options = [with_amounts(one, context.licenses.asked(entry, one.workers)) for one in options]
    if "required_switches" not in entry and max(option.workers for option in options) > 1:
        context.notes.assume(NO_SWITCHES)
    if not all(option.demand.memory_mib for option in options):
        context.notes.assume(NO_MEMORY)
    options = in_blocks(entry, options, context.cluster)
    if sets:
        options = [
            one.model_copy(update={"id": f"{one.id}:{text}", "conditions": NodeConditions(node_selector=labels)})
            for text, labels in sets.items()
            for one in options
        ]
    least = min((option.demand for option in options), key=lambda demand: demand.gpus)  # whole nodes are worth no more
    valued = [{"value": context.value(entry, one.workers, least)} for one in options]
    name = {"id": "default"} if len(options) == 1 else {}
    return [one.model_copy(update={**value, **name}) for one, value in zip(options, valued, strict=True)], where
