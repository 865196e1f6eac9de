"""Slurm's jobs: their states and records; those that wait exactly as they ask, or left out by name."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice, product
from typing import Any

from placeopt.documents.faults import make_record
from placeopt.errors import BadInput
from placeopt.importers.import_notes import ImportNotes
from placeopt.importers.json_entry import JsonEntry
from placeopt.importers.observed_round import ObservedJob, ObservedWorker, origin_of, unreadable_job
from placeopt.importers.priority_rule import PriorityRule, comment_marks
from placeopt.importers.slurm.cluster_settings import Licenses, SlurmPreemption
from placeopt.importers.slurm.fields import parse_indices, parse_tasks
from placeopt.importers.slurm.job_requests import (
    MAX_RANGE,
    WaitingRequest,
    divided,
    exclusive_of,
    in_blocks,
    node_count,
    whole_nodes,
    with_amounts,
)
from placeopt.importers.slurm.lists import (
    JobLeftOut,
    NotEligible,
    first_set,
    is_set,
    known,
    leave_out,
    milliseconds,
    reason_of,
    slurm_number,
)
from placeopt.importers.slurm.node_conditions import ASKS, Asked, asked_of_nodes, beside, nodes_of
from placeopt.importers.slurm.nodes import FOR_ALL, SlurmNode, kind_of, shares_of
from placeopt.importers.stated_marks import with_stated
from placeopt.model import Cluster, Demand, Group, Job, NodeConditions, Option
from placeopt.model.base import MAX_JOBS, Amounts
from placeopt.model.conditions import ANY_NODE

NO_SWITCHES = "This Slurm does not list --switches: workers of waiting jobs may lie under any."
NO_MEMORY = "Waiting jobs for which no memory is stated (--mem=0 too) count as asking for none."
SOCKETS = "Sockets and cores that jobs ask for are those of the node: Slurm wants as many with idle cores."
ONE_KIND = "Waiting jobs with --exclusive have nodes of one kind each."


@dataclass(frozen=True)
class JobContext:
    """The nodes of a list, the cluster's settings as far as they are given, and where notes go."""

    nodes: Mapping[str, SlurmNode]
    cluster: Cluster
    notes: ImportNotes
    rule: PriorityRule
    preemption: SlurmPreemption
    read: frozenset[str]
    """Fields of jobs that are read, or taken as the cluster's own settings."""
    now_ms: int
    licenses: Licenses
    by_user: bool
    """Whether some job keeps off its nodes jobs of other users, so that all jobs have labels of theirs."""
    whole_kinds: set[str] = field(default_factory=set)
    """Of nodes that waiting jobs ask for as a whole."""
    known: dict[tuple[object, ...], Asked] = field(default_factory=dict)

    @cached_property
    def shares(self) -> dict[str, int]:
        """How many parts a GPU has, as ``gres/shard``, where all nodes with some agree."""
        found = {item for machine in self.cluster.machines for item in shares_of(machine).items()}
        counts = Counter(name for name, _ in found)
        return {name: count for name, count in found if counts[name] == 1}

    @cached_property
    def kept_cpus(self) -> int:
        """The least number of CPUs that a node keeps for each of its GPUs, of nodes that keep some; 0: none does."""
        return min((node.cpus_per_gpu for node in self.nodes.values() if node.cpus_per_gpu), default=0)

    def check_read(self, entry: JsonEntry, *others: str) -> None:
        """Raise `JobLeftOut` if a job states what is not read; ``others``: fields that the caller reads."""
        if field := first_set(entry, self.read.union(others)):
            raise JobLeftOut(f"states {field[:60]}, which is not read")

    def asked(self, entry: JsonEntry, *, one_node: bool) -> Asked:
        """Return `asked_of_nodes`, the same for jobs that state the same."""
        key = (one_node, *map(str, entry.raws(ASKS)))
        if key not in self.known:
            self.known[key] = asked_of_nodes(entry, self.nodes, one_node=one_node)
        return self.known[key]

    def value(self, entry: JsonEntry, workers: int, demand: Demand) -> int:
        """Return the value of a job of so many workers."""
        each = self.rule.gpu_value(slurm_number(entry, "priority") or 0, job_classes(entry))
        return max(1, self.rule.value(workers * demand.gpus, each) * demand.gpu_milli // 1000)


def job_classes(entry: JsonEntry) -> list[str]:
    """Return the classes of a job by which a rule may name it: its QOS, then its partitions."""
    return [entry.text("qos", ""), *entry.text("partition", "").split(",")]


def job_name(entry: JsonEntry) -> str:
    """Return the id of a job as Slurm's commands write it: ``7``, or ``7_2`` of a task of an array."""
    own = slurm_number(entry, "job_id")
    if own is None:
        raise entry.bad("job_id", "a number")
    array, task = slurm_number(entry, "array_job_id") or 0, slurm_number(entry, "array_task_id")
    return f"{array}_{task}" if array and task is not None else str(own)


def make_job(entry: JsonEntry, name: str, options: Iterable[Option], **others: Any) -> Job:
    """
    Make the job of an entry; ``others``: further fields.

    It states the conditions on nodes that all of its options have. Parts of a job that are jobs of their own, ``ID+1``,
    have its origin.
    """
    ways = tuple(options)
    if all(one.conditions == ways[0].conditions for one in ways):
        others["conditions"] = ways[0].conditions
        ways = tuple(one.model_copy(update={"conditions": ANY_NODE}) for one in ways)
    return make_record(
        Job,
        entry.where,
        id=name,
        kind="training" if ways[0].gpu_milli else "cpu",
        user=entry.text("user_name", "") or None,
        queue=entry.text("partition", "").split(",")[0] or None,
        arrival_ms=milliseconds(entry, "submit_time", 1000) or 0,
        options=ways,
        origin=origin_of(entry.where, entry.text("name", "") or name, name.partition("+")[0]),
        **others,
    )


def marks_of(entry: JsonEntry) -> dict[str, str]:
    """Return the marks of a job's owner."""
    return comment_marks(" ".join(entry.text(key, "") for key in ("comment", "admin_comment")))


def check_startable(entry: JsonEntry, *, licenses: bool) -> None:
    """
    Raise `JobLeftOut` if free nodes alone might not start a pending job, `NotEligible` if they do not.

    ``licenses``: Whether licences count as room, too. ``state_reason`` is one word, ``state_description`` Slurm's text
    beside it, such as ``launch failed requeued held``.
    """
    reason, description = entry.text("state_reason", "None"), entry.text("state_description", "")
    if re.search(r"\bheld\b", description):
        raise NotEligible(f"waiting, {description[:60]}")
    if reason not in known("reason", "room") and not (licenses and reason == "Licenses"):
        raise (NotEligible if reason in known("reason", "no room") else JobLeftOut)(f"waiting for {reason[:60]}")
    if entry.flag("hold") or slurm_number(entry, "priority") == 0:
        raise NotEligible("waiting, held (priority 0)")


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
        own = {"id": task_name, "origin": origin_of(entry.where, called, task_name)}
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
        ways = list(islice(product(*(_component(context, entry) for entry in entries)), MAX_RANGE + 1))
        if len(ways) > MAX_RANGE:
            raise JobLeftOut("a heterogeneous job that may run in too many ways")
        others = [beside(entry, labelled=context.by_user) for entry in entries]
        if any(one != others[0] for one in others):
            raise JobLeftOut("a heterogeneous job of which a component alone keeps other jobs off its nodes")
        run_time_ms = max(milliseconds(entry, "time_limit", 60_000) or 0 for entry in entries) or None
        options = []
        for number, parts in enumerate(ways):
            groups, values = zip(*parts, strict=True)
            fields = {"id": f"way{number}", "value": sum(values), "run_time_ms": run_time_ms}
            options.append(make_record(Option, first.where, groups=groups, workers_per_node_max=1, **fields))
        job = make_job(first, job_name(first), options, **others[0])
        job = with_stated(job, map(marks_of, entries), first.where)
        yield ObservedJob(job, priority=priority, where=first.where)
    except (JobLeftOut, BadInput) as error:
        at = next((entry for entry in entries if f"{entry.where}." in str(error)), first)
        leave_out(context.notes, at, error, map(job_name, entries))


def _component(context: JobContext, entry: JsonEntry) -> list[tuple[Group, int]]:
    """Return the alternative groups of a component of a heterogeneous job, with their values."""
    check_startable(entry, licenses=context.licenses.listed)
    options = _options(context, entry, "het_job_id")
    if any(option.most_workers > 1 and option.workers_per_node_max != 1 for option in options):
        raise JobLeftOut("a heterogeneous job that has several workers on a node")
    fields = [{name: getattr(option, name) for name in Group.model_fields} for option in options]
    return [
        (Group(**{**own, "id": job_name(entry)}), option.value) for own, option in zip(fields, options, strict=True)
    ]


def starting_job(context: JobContext, entry: JsonEntry, name: str, nodes: Sequence[str]) -> ObservedJob:
    """Return a job that starts on these nodes as running there; one that cannot be read holds all of them."""
    try:
        job = _as_requested(context, entry, name)
        option = next((option for option in job.options if option.most_workers == len(nodes)), None)
        if option is None or option.groups:
            raise JobLeftOut("starts with another number of workers than it asks for, or with unlike ones")
        workers = tuple(map(ObservedWorker, nodes))
        return ObservedJob(job.model_copy(update={"options": (option,)}), workers, where=entry.where)
    except (JobLeftOut, BadInput) as error:
        return unreadable_job(name, nodes, reason_of(entry, error), entry.where)


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
    job = make_job(entry, name, _options(context, entry, "het_job_id"), **beside(entry, labelled=context.by_user))
    return with_stated(job, [marks_of(entry)], entry.where)


def _options(context: JobContext, entry: JsonEntry, *read: str) -> list[Option]:
    """
    Return the ways to run a job, with what each asks of its nodes; ``read``: fields that the caller reads.

    Raises `JobLeftOut` or `BadInput` where a request cannot be read.
    """
    context.check_read(entry, "mcs_label" if exclusive_of(entry) == "mcs" else "", *read)
    asked = WaitingRequest(entry, context.shares)
    options = asked.options()
    numbers = {node_count(option) for option in options}
    where = context.asked(entry, one_node=numbers == {1})
    if asked.exclusive == "none" or is_set(entry.raw("threads_per_core")):
        there = list(nodes_of(where.ways, context.nodes))
        options = _by_core(entry, options, there)
    if asked.exclusive == "none":
        kinds = {kind_of(one.machine): one.machine for one in there}
        options = whole_nodes(options, kinds)
        if len(kinds) > 1:
            context.whole_kinds.update(kinds)
            context.notes.assume(ONE_KIND)
    if kept := context.kept_cpus:
        free = [max(0, one.demand.cpu_millicores // 1000 - one.demand.gpus * kept) for one in options]
        options = [with_amounts(one, {FOR_ALL: cpus}) for one, cpus in zip(options, free, strict=True)]
    if "required_switches" not in entry and max(option.workers for option in options) > 1:
        context.notes.assume(NO_SWITCHES)
    if not all(option.demand.memory_mib for option in options):
        context.notes.assume(NO_MEMORY)
    if any(is_set(entry.raw(key)) for key in ("sockets_per_node", "cores_per_socket")):
        context.notes.assume(SOCKETS)
    least = min((option.demand for option in options), key=lambda demand: demand.gpus)  # whole nodes are worth no more
    found = []
    for option in in_blocks(entry, options, context.cluster):
        valued = option.model_copy(update={"value": context.value(entry, option.workers, least)})
        some = _with_some(job_name(entry), valued, where.some)
        for licenses, (way, conditions) in product(ways := context.licenses.asked(entry), where.ways.items()):
            one = _with_licenses(job_name(entry), some, licenses)
            id_ = ":".join(filter(None, [option.id, way, "+".join(licenses) if len(ways) > 1 else ""]))
            found.append(one.model_copy(update={"id": id_, "conditions": conditions & one.conditions}))
    return [found[0].model_copy(update={"id": "default"})] if len(found) == 1 else found


def _by_core(entry: JsonEntry, options: list[Option], nodes: Sequence[SlurmNode]) -> list[Option]:
    """Return the options with whole cores, of which ``--threads-per-core`` leaves threads unused."""
    if not is_set(entry.raw("threads_per_core")):
        return options
    used = slurm_number(entry, "threads_per_core") or 1
    cores = {max(1, node.threads // used) for node in nodes}
    if max(cores, default=1) > 1 and (len(cores) > 1 or is_set(entry.raw("memory_per_cpu"))):
        raise JobLeftOut("asks for --threads-per-core on nodes with more, of unlike numbers or with memory by CPU")
    return [with_amounts(one, {}, cpu_millicores=max(cores, default=1) * one.demand.cpu_millicores) for one in options]


def _with_some(name: str, option: Option, some: Sequence[tuple[int, NodeConditions]]) -> Option:
    """Return an option of which so many nodes meet more conditions; one worker on each is a group of its own."""
    nodes, total = node_count(option), sum(count for count, _ in some)
    if total > min(option.workers, nodes or option.workers):
        raise JobLeftOut("asks for more nodes by name, or with a feature, than it has")
    if len(some) > 1 and option.workers_per_node_max != 1:
        raise JobLeftOut("asks for several kinds of nodes, and not for one worker on each")
    for count, conditions in some:
        if count == nodes:
            return option.model_copy(update={"conditions": option.conditions & conditions})
        each = 1 if count > 1 else None
        option = divided(name, option, count, conditions=conditions, workers_per_node_max=each)
    return option


def _with_licenses(name: str, option: Option, licenses: Mapping[str, int]) -> Option:
    """Return an option that takes licences: each worker as many or, where they cannot share evenly, one of them all."""
    workers = option.most_workers
    if not licenses:
        return option
    if not option.groups and not any(count % workers for count in licenses.values()):
        return with_amounts(option, {key: count // workers for key, count in licenses.items()})
    demand = option.leaves[0].demand
    taken = Amounts(sorted({**demand.resources, **licenses}.items()))
    return divided(name, option, 1, demand=demand.model_copy(update={"resources": taken}))
