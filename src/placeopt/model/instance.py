"""The instance: one scheduling round as a file."""

import hashlib
from collections.abc import Collection, Container, Sequence
from functools import cached_property
from itertools import chain
from json.encoder import encode_basestring
from operator import itemgetter
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import Field, model_validator

from placeopt.model.base import (
    MAX_JOBS,
    FormatVersion,
    Milliseconds,
    Name,
    Record,
    Revision,
    Thousandths,
    refuse_repeats,
    trusted,
)
from placeopt.model.cluster import Cluster
from placeopt.model.job import Job
from placeopt.model.placement import Running
from placeopt.model.policy import Policy

R = TypeVar("R", bound=Record)
FEW = 500
"""Rows below which pydantic is as quick."""
PART = 8192
"""Rows written at once: what is written of them stays in the processor's cache."""
SHARED = 4
"""Rows per distinct object in a column from which writing by columns pays."""
SAMPLE = 500
"""First rows that show whether a column shares anything."""
PLAIN = ({str}, {int}, {str, type(None)}, {int, type(None)})
"""Types of a column whose equal values are written alike: not so ``1``, ``True`` and ``1.0``."""


Texts = dict[str, dict[int, str]]
"""By field, what was written of an object, by its ``id``; only while the objects are held."""


def canonical_rows(rows: Sequence[R], texts: Texts | None = None) -> str | None:
    """
    Return what ``model_dump_json(exclude_defaults=True)`` makes of records of one kind, as the inside of a list.

    Column by column: a value that many rows share is written once, and not again for other rows that come with the same
    ``texts``. None where the rows share too little for that to pay, or a field has no default to compare with other
    than the first, its key.
    """
    texts = {} if texts is None else texts
    if len(rows) < FEW or len(type(rows[0]).model_fields) == 1:
        return None
    kind = type(rows[0])
    read = itemgetter(*kind.model_fields)  # row by row: a row is in the cache while it is read
    cells = list(chain.from_iterable([read(row.__dict__) for row in rows]))
    width = len(kind.model_fields)
    held = {name: cells[number::width] for number, name in enumerate(kind.model_fields)}
    defaults = {
        name: field.get_default(call_default_factory=True)
        for name, field in kind.model_fields.items()
        if not field.is_required()
    }
    told = [name for name, values in held.items() if name not in defaults or not _is_all(values, defaults[name])]
    if any(_varied(held[name]) for name in told):
        return None
    columns: list[Sequence[str]] = []
    for name in told:
        if name not in defaults:
            if columns:
                return None
            columns.append(_keys(name, held[name]))
            continue
        column = _column(kind, name, held[name], defaults[name], texts.setdefault(name, {}))
        if column is None:
            return None
        if column:
            columns.append(column)
    return "".join(chain.from_iterable(zip(*columns, strict=True)))[len("},") :] + "}"


def _keys(name: str, values: list[str]) -> list[str]:
    """Return ``},{"name":value`` of every row, all values different: the end of the row before, and the begin of it."""
    together = "".join(values)
    if len(encode_basestring(together)) == len(together) + 2:  # nothing to escape
        return [f'}},{{"{name}":"{value}"' for value in values]
    return [f'}},{{"{name}":{encode_basestring(value)}' for value in values]


def _is_all(values: list[Any], default: object) -> bool:
    """Return whether a column holds nothing but its default, as most do; of other columns not all is compared."""
    quick = default is None or isinstance(default, str | int) or default in ((), {})
    return quick and bool(values[0] == default) and values.count(default) == len(values)


def _varied(values: list[Any]) -> bool:
    """Return whether the first rows all hold an object of their own that is slow to write: then columns do not pay."""
    return not isinstance(values[0], str | int | None) and len(set(map(id, values[:SAMPLE]))) == SAMPLE


def _column(
    kind: type[Record], name: str, values: list[Any], default: object, known: dict[int, str]
) -> list[str] | None:
    """
    Return ``,"name":value`` of every row, nothing where it is the default; an empty list if it is so everywhere.

    ``known``: What was written of objects of this column; those that are written now are added.
    """
    types, head = set(map(type, values)), f',"{name}":'
    keys = (
        values if types in PLAIN else list(map(id, values))
    )  # the rows hold the objects, so no number is given to two
    distinct = dict(zip(keys, values, strict=True))
    if types == {int} and len(distinct) * SHARED > len(values):
        return ["" if value == default else f"{head}{value}" for value in values]
    objects = 0
    texts: dict[Any, str] = {}
    for key, value in distinct.items():
        if value == default:
            texts[key] = ""
        elif value.__class__ is str:
            texts[key] = head + encode_basestring(value)
        elif value.__class__ is int:
            texts[key] = f"{head}{value}"
        else:
            objects += 1
            if objects * SHARED > len(values):
                return None
            text = known.get(id(value))
            if text is None:
                text = known[id(value)] = f",{_written(kind, name, value)}"
            texts[key] = text
    return list(map(texts.__getitem__, keys)) if any(texts.values()) else []


def _written(kind: type[Record], name: str, value: Any) -> str:
    """Return ``"name":value`` as pydantic writes it inside a record of that kind."""
    alone = trusted(kind, {name: value}).model_dump_json(exclude_defaults=True)
    return alone[1:-1]


FORMAT_VERSION: Literal[1] = 1


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


def job_fault(job: Job, nodes: Container[str], queues: Collection[str], levels: Collection[str]) -> str | None:
    """Return the first reference of a job to nothing, as ``field: message``; None if there is none."""
    if job.queue is not None and queues and job.queue not in queues:
        return f"queue: no queue {job.queue!r} in policy.queues"
    for n, name in enumerate(job.nodes_allowed or ()):
        if name not in nodes:
            return f"nodes_allowed[{n}]: no node {name!r} in the cluster"
    for o, option in enumerate(job.options):
        for s, split in enumerate(option.splits):
            if split.level not in levels:
                known = ", ".join(sorted(levels))
                return f"options[{o}].splits[{s}].level: no level {split.level!r} in the cluster; known: {known}"
    return None


class Instance(Record):
    """A cluster snapshot, the running placements, all jobs (running and waiting), profiles and a default policy."""

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
    cluster: Cluster
    """Machine types, network and nodes."""
    jobs: Annotated[tuple[Job, ...], Field(max_length=MAX_JOBS)] = ()
    """All jobs, running and waiting."""
    running: Annotated[tuple[Running, ...], Field(max_length=MAX_JOBS)] = ()
    """Placements that hold now; their jobs are in ``jobs`` too."""
    slowdowns: Annotated[tuple[Slowdown, ...], Field(max_length=100_000)] = ()
    """Interference between profiles; a pair that is missing causes none."""
    policy: Policy = Policy()
    """Policy of the round, unless the caller gives another."""

    @model_validator(mode="after")
    def _references(self) -> Self:
        jobs: dict[str, Job] = {}
        nodes = {node.id for node in self.cluster.nodes}
        queues = {queue.id for queue in self.policy.queues}
        levels = {"node"} | {domain.level for domain in self.cluster.domains}
        for i, job in enumerate(self.jobs):
            if job.id in jobs:
                raise ValueError(f"jobs[{i}].id: {job.id!r} appears twice; ids of jobs are unique")
            jobs[job.id] = job
            fault = job_fault(job, nodes, queues, levels)
            if fault is not None:
                raise ValueError(f"jobs[{i}].{fault}")
        seen: set[str] = set()
        for i, running in enumerate(self.running):
            owner = jobs.get(running.job)
            if owner is None:
                raise ValueError(f"running[{i}].job: no job {running.job!r}; running jobs stand in 'jobs' too")
            if running.job in seen:
                raise ValueError(f"running[{i}].job: {running.job!r} runs twice; one entry per running job")
            seen.add(running.job)
            if all(option.id != running.option for option in owner.options):
                raise ValueError(f"running[{i}].option: job {running.job!r} has no option {running.option!r}")
        pairs = ((slowdown.profile, slowdown.beside) for slowdown in self.slowdowns)
        refuse_repeats("slowdowns[]", pairs, "one entry per (profile, beside)")
        self._check_running(jobs)
        return self

    def _check_running(self, jobs: dict[str, Job]) -> None:
        # What runs is kept as it is, so a malformed entry would leave the round without any valid plan. Nodes and GPUs
        # that the cluster does not list are none: they may be gone while the job still counts as running there.
        for i, running in enumerate(self.running):
            option = next(option for option in jobs[running.job].options if option.id == running.option)
            for a, assignment in enumerate(running.assignments):
                where = f"running[{i}].assignments[{a}]"
                fault = assignment.fault(option.demand)
                if fault is not None:
                    raise ValueError(f"{where}.{fault}")
            ranks = sorted(worker.rank for assignment in running.assignments for worker in assignment.workers)
            least = option.workers if option.workers_min is None else option.workers_min
            if not least <= len(ranks) <= option.workers:
                raise ValueError(
                    f"running[{i}].assignments: {len(ranks)} workers; option {option.id!r} of job {running.job!r} has "
                    f"{least} to {option.workers}"
                )
            if ranks != list(range(len(ranks))):
                raise ValueError(f"running[{i}].assignments: ranks of workers must be 0 to {len(ranks) - 1}, each once")

    @property
    def running_gpu_milli(self) -> int:
        """Thousandths of GPUs that running jobs request; what is granted above is free for others."""
        demands = {(job.id, option.id): option.demand.gpu_milli for job in self.jobs for option in job.options}
        return sum(
            demands[held.job, held.option] * len(assignment.gpus)
            for held in self.running
            for assignment in held.assignments
        )

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON form, so of the content and not of the file's spelling."""
        parts = [self.jobs[start : start + PART] for start in range(0, len(self.jobs), PART)]
        texts: Texts = {}
        begin = canonical_rows(parts[0], texts) if parts else None
        if begin is None:
            return hashlib.sha256(self.model_dump_json(exclude_defaults=True).encode()).hexdigest()
        text = self.model_copy(update={"jobs": self.jobs[:1]}).model_dump_json(exclude_defaults=True)
        first = self.jobs[0].model_dump_json(exclude_defaults=True)
        before, _, after = text.partition(f'"jobs":[{first}]')
        digest = hashlib.sha256(f'{before}"jobs":[{begin}'.encode())
        for part in parts[1:]:
            rows = canonical_rows(part, texts) or ",".join([job.model_dump_json(exclude_defaults=True) for job in part])
            digest.update(f",{rows}".encode())
        digest.update(f"]{after}".encode())
        return digest.hexdigest()
