"""The instance: one scheduling round as a file; what its reader noted, and room that is held without a job."""

from collections.abc import Collection
from functools import cached_property
from itertools import islice
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from placeopt.model.base import (
    MAX_JOBS,
    Amounts,
    FormatVersion,
    GpuIndex,
    Id,
    LongName,
    Mib,
    Millicores,
    Milliseconds,
    Name,
    Record,
    Resources,
    Revision,
    Thousandths,
    refuse_repeats,
)
from placeopt.model.cluster import Cluster
from placeopt.model.group import Group
from placeopt.model.job import MAX_PRIORITY, Job
from placeopt.model.machine import PART_LEVELS
from placeopt.model.placement import Placement, Running
from placeopt.model.policy import Policy
from placeopt.model.templates import JobsDocument, digest_of

FORMAT_VERSION: Literal[2] = 2
FAILED_GPU = "failed-gpu-"
"""Begins the id of a hold that stands for a failed GPU."""


NAMES_SHOWN = 3


class ReadingNote(Record):
    """One reason for which jobs or nodes were not taken over as they are, or an assumption about all."""

    kind: Literal["left out", "not eligible", "kept as running", "drained", "assumed"]
    """
    ``left out``: waiting jobs that are not in the round since it cannot say what they ask for. ``not eligible``: those
    that no free capacity starts, since they are held, or wait for a time, another job, or pods that are missing.
    ``kept as running``: running jobs that hold all that they may hold; no round moves or shrinks them. ``drained``:
    nodes that take no new work. ``assumed``: what the files do not state.
    """
    reason: LongName
    """Why, or what was assumed."""
    names: Annotated[tuple[LongName, ...], Field(max_length=MAX_JOBS)] = ()
    """The jobs or nodes, all of them, as their system calls them."""

    def __str__(self) -> str:
        if self.kind == "assumed":
            return self.reason
        some = ", ".join(name[:60] for name in islice(self.names, NAMES_SHOWN))
        more = ", ..." if len(self.names) > NAMES_SHOWN else ""
        return f"{self.kind.capitalize()}, {self.reason[:200]}: {len(self.names)} ({some}{more})."


class Hold(Record):
    """
    Room on a node that is kept free, whether or not it is free now.

    Jobs that run there stay; those that start, or move there, leave the room free. It does not count against the jobs
    that it is held for, nor against jobs above its priority: they take of it first. A hold that has not begun counts
    against the jobs that may still run then: those that state no ``run_time_ms``, or one that is longer.
    """

    id: Id
    """Unique name of the hold."""
    node: Id
    """Node on which room is held; of a node that the cluster does not list nothing is."""
    gpus: tuple[GpuIndex, ...] = ()
    """Indices of the GPUs that are held, each as a whole."""
    cpu_millicores: Millicores = 0
    """CPU held, in thousandths of a core."""
    memory_mib: Mib = 0
    """Host memory held."""
    resources: Resources = Field(default_factory=Amounts)
    """Named resources held."""
    from_ms: Milliseconds = 0
    """Time from which it is held. All jobs count as beginning now, also those that run."""
    until_ms: Milliseconds | None = None
    """Time from which nothing is held any more; null: no end is known."""
    priority: Annotated[int, Field(ge=-MAX_PRIORITY, le=MAX_PRIORITY)] | None = None
    """It counts against jobs of at most this priority; null: against all."""
    jobs: tuple[Id, ...] = Field(default=(), alias="for")
    """Jobs that the room is held for."""

    @model_validator(mode="after")
    def _ends_after_it_begins(self) -> Self:
        if self.until_ms is not None and 0 < self.from_ms >= self.until_ms:
            raise ValueError(f"until_ms: {self.until_ms}, expected after from_ms, {self.from_ms}")
        return self

    @property
    def kind(self) -> object:
        """What is equal for holds that count against the same jobs."""
        return self.jobs, self.priority, self.from_ms

    def counts_against_all(self, now_ms: int) -> bool:
        """Return whether no job may take of it."""
        return self.priority is None and not self.jobs and self.from_ms <= now_ms

    def counts_against(self, job: Job, now_ms: int) -> bool:
        """Return whether a job that begins now has to leave the room free."""
        if job.id in self.jobs or not (self.priority is None or job.priority <= self.priority):
            return False
        times = [option.run_time_ms for option in job.options] if self.from_ms > now_ms else []
        return not times or any(time is None or now_ms + time > self.from_ms for time in times)


def hold_groups(holds: tuple[Hold, ...], now_ms: int) -> tuple[tuple[Hold, ...], ...]:
    """
    Return the groups of holds of one node that jobs leave free together.

    What the jobs that all of a group count against take, and the room of the group, are at most what the node has. Each
    hold is a group. Now, and whenever one begins, so are those holds together that count against all, and for each
    priority those that count against it.
    """
    groups: dict[tuple[Hold, ...], None] = {(hold,): None for hold in holds}
    for moment in {now_ms, *(hold.from_ms for hold in holds if hold.from_ms > now_ms)}:
        there = [h for h in holds if h.from_ms <= moment and (h.until_ms is None or h.until_ms > moment)]
        together = [tuple(hold for hold in there if hold.priority is None and not hold.jobs)]
        for priority in {hold.priority for hold in there}:
            level = [h for h in there if h.priority is None or (priority is not None and h.priority >= priority)]
            together.append(tuple(level))
        groups |= dict.fromkeys(filter(None, together))
    return tuple(groups)


class Slowdown(Record):
    """
    Excess e(j, k) of jobs of ``profile`` beside one job of profile ``beside``, in thousandths of the solo time.

    By the closest domain that they share: gpu, switch, socket, node. A level left out counts nothing.
    """

    profile: Name
    """Profile of the slowed job."""
    beside: Name
    """Profile of the co-runner."""
    gpu_thousandths: Thousandths = 0
    """Excess if they share a GPU."""
    switch_thousandths: Thousandths = 0
    """Excess if they share a switch, but no GPU."""
    socket_thousandths: Thousandths = 0
    """Excess if they share a socket, but no switch."""
    node_thousandths: Thousandths = 0
    """Excess if they share a node, but no socket."""


def job_fault(job: Job, queues: Collection[str], levels: Collection[str]) -> str | None:
    """Return the first reference of a job to nothing, as ``field: message``; None if there is none."""
    if job.queue is not None and queues and job.queue not in queues:
        return f"queue: no queue {job.queue!r} in policy.queues"
    for o, option in enumerate(job.options):
        for path, group in option.walk():
            splits = ((s, split.level) for s, split in enumerate(group.splits) if split.level not in PART_LEVELS)
            named = [(f"splits[{s}].level", level) for s, level in splits]
            named += [(f"spread[{s}].level", spread.level) for s, spread in enumerate(group.spread)]
            named += [(f"prefer[{i}]", level) for i, level in enumerate(group.prefer)]
            for where, level in named:
                if level not in levels:
                    known = ", ".join(sorted(levels))
                    return f"options[{o}].{path}{where}: no level {level!r} in the cluster; known: {known}"
    return None


def running_fault(job: Job, held: Placement) -> str | None:
    """Return how a running placement contradicts its job, as ``field: message``; None if it does not."""
    option = next((option for option in job.options if option.id == held.option), None)
    if option is None:
        return f"option: job {job.id!r} has no option {held.option!r}"
    leaves: dict[Id | None, Group] = {leaf.id if option.groups else None: leaf for leaf in option.leaves}
    ranks: dict[Id | None, list[int]] = {name: [] for name in leaves}
    for a, assignment in enumerate(held.assignments):
        leaf = leaves.get(assignment.group)
        if leaf is None:
            known = ", ".join(repr(name) for name in leaves)
            return f"assignments[{a}].group: option {option.id!r} has no leaf {assignment.group!r}; it has {known}"
        fault = assignment.fault(leaf.demand)
        if fault is not None:
            return f"assignments[{a}].{fault}"
        ranks[assignment.group] += [worker.rank for worker in assignment.workers]
    if not option.groups and not option.fewest <= len(ranks[None]) <= option.workers:
        count, least = len(ranks[None]), option.fewest
        return f"assignments: {count} workers; option {option.id!r} of job {job.id!r} has {least} to {option.workers}"
    first = 0
    for name, leaf in leaves.items():
        count = len(ranks[name])
        if count > leaf.workers:
            return f"assignments: {count} workers of group {name!r}, which has {leaf.workers}"
        if sorted(ranks[name]) != list(range(first, first + count)):
            return f"assignments: ranks of workers must be {first} to {first + count - 1}, each once"
        first += count
    return None


class Instance(JobsDocument):
    """A cluster snapshot, the running placements, all jobs (running and waiting), profiles and a default policy."""

    document: Literal["round"] = "round"
    """What the file is."""
    format_version: FormatVersion = FORMAT_VERSION
    """Version of the file format."""
    name: Name = "unnamed"
    """Name of the round; a plan of it states the same name."""
    revision: Revision = 0
    """Number of the cluster's state; it grows by one with every change."""
    now_ms: Milliseconds = 0
    """Time of the round, on the clock of all other times."""
    note: Annotated[str, Field(max_length=10_000)] = ""
    """Source and licence of the data, or how it was made."""
    reading: Annotated[tuple[ReadingNote, ...], Field(max_length=MAX_JOBS)] = ()
    """What an importer left out, kept in doubt, drained or assumed."""
    cluster: Cluster
    """Machine types, network and nodes."""
    jobs: Annotated[tuple[Job, ...], Field(max_length=MAX_JOBS)] = ()
    """All jobs, running and waiting."""
    running: Annotated[tuple[Running, ...], Field(max_length=MAX_JOBS)] = ()
    """Placements that hold now; their jobs are in ``jobs`` too."""
    holds: Annotated[tuple[Hold, ...], Field(max_length=MAX_JOBS)] = ()
    """Room that is held without a job."""
    slowdowns: Annotated[tuple[Slowdown, ...], Field(max_length=100_000)] = ()
    """Interference between profiles; a pair that is missing causes none."""
    policy: Policy = Policy()
    """Policy of the round, unless the caller gives another."""

    @model_validator(mode="after")
    def _references(self) -> Self:
        queues = {queue.id for queue in self.policy.queues}
        levels = {"node"} | {domain.level for domain in self.cluster.domains}
        jobs: dict[Id, Job] = {}
        judged: set[tuple[object, ...]] = set()
        for i, job in enumerate(self.jobs):
            jobs[job.id] = job
            judged_as = (id(job.options), job.queue)  # alike in all jobs of a template
            if judged_as in judged:
                continue
            judged.add(judged_as)
            fault = job_fault(job, queues, levels)
            if fault is not None:
                raise ValueError(f"jobs[{i}].{fault}")
        if len(jobs) < len(self.jobs):
            refuse_repeats("jobs[].id", (job.id for job in self.jobs), "ids of jobs are unique")
        seen: set[str] = set()
        for i, running in enumerate(self.running):
            owner = jobs.get(running.job)
            if owner is None:
                raise ValueError(f"running[{i}].job: no job {running.job!r}; running jobs stand in 'jobs' too")
            if running.job in seen:
                raise ValueError(f"running[{i}].job: {running.job!r} runs twice; one entry per running job")
            seen.add(running.job)
            # What runs is kept as it is, so a malformed entry would leave the round without any valid plan. A node or
            # GPU that the cluster does not list is none: it may be gone while the job still counts as running there.
            fault = running_fault(owner, running)
            if fault is not None:
                raise ValueError(f"running[{i}].{fault}")
        refuse_repeats("holds[].id", (hold.id for hold in self.holds), "ids of holds are unique")
        pairs = ((slowdown.profile, slowdown.beside) for slowdown in self.slowdowns)
        refuse_repeats("slowdowns[]", pairs, "one entry per (profile, beside)")
        return self

    @property
    def holds_now(self) -> tuple[Hold, ...]:
        """The holds that have not ended, also those that have not begun."""
        return tuple(hold for hold in self.holds if hold.until_ms is None or hold.until_ms > self.now_ms)

    @property
    def failed_gpus(self) -> dict[tuple[str, int], Hold]:
        """Node and index of each GPU that is stated to have failed -> the hold that keeps all jobs off it."""
        return {(hold.node, hold.gpus[0]): hold for hold in self.holds if hold.id.startswith(FAILED_GPU) and hold.gpus}

    @property
    def kept_unread(self) -> frozenset[str]:
        """Running jobs of which it was not read what they hold: rounds do not move or shrink them."""
        kept = {name for note in self.reading if note.kind == "kept as running" for name in note.names}
        runs = {one.job for one in self.running} if kept else set()
        named = (job for job in self.jobs if job.id in runs)
        return frozenset(job.id for job in named if kept & {job.id, *(job.origin.names if job.origin else ())})

    @property
    def hold_kinds(self) -> dict[object, Hold]:
        """The first hold of each kind among those that have not ended."""
        return {hold.kind: hold for hold in reversed(self.holds_now)}

    @property
    def running_gpu_milli(self) -> int:
        """Thousandths of GPUs that running jobs request; what is granted above is free for others."""
        demands = {
            (job.id, option.id, leaf.id if option.groups else None): leaf.demand.gpu_milli
            for job in self.jobs
            for option in job.options
            for leaf in option.leaves
        }
        return sum(
            demands[held.job, held.option, assignment.group] * len(assignment.gpus)
            for held in self.running
            for assignment in held.assignments
        )

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the content, not of the file's spelling: neither order of labels nor names of templates count."""
        rest = self.model_copy(update={"jobs": ()}).model_dump_json(exclude_defaults=True)
        return digest_of(rest, self.jobs)
