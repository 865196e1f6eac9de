"""The instance: one scheduling round as a file."""

import hashlib
from collections.abc import Collection, Container
from functools import cached_property
from typing import Annotated, Literal, Self

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
)
from placeopt.model.canonical import canonical_list
from placeopt.model.cluster import Cluster
from placeopt.model.job import Job
from placeopt.model.placement import Placement, Running
from placeopt.model.policy import Policy

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


def running_fault(job: Job, held: Placement) -> str | None:
    """Return how a running placement contradicts its job, as ``field: message``; None if it does not."""
    option = next((option for option in job.options if option.id == held.option), None)
    if option is None:
        return f"option: job {job.id!r} has no option {held.option!r}"
    for a, assignment in enumerate(held.assignments):
        fault = assignment.fault(option.demand)
        if fault is not None:
            return f"assignments[{a}].{fault}"
    ranks = sorted([worker.rank for assignment in held.assignments for worker in assignment.workers])
    least = option.workers if option.workers_min is None else option.workers_min
    if not least <= len(ranks) <= option.workers:
        return (
            f"assignments: {len(ranks)} workers; option {option.id!r} of job {job.id!r} has {least} to {option.workers}"
        )
    if ranks != list(range(len(ranks))):
        return f"assignments: ranks of workers must be 0 to {len(ranks) - 1}, each once"
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
        pairs = ((slowdown.profile, slowdown.beside) for slowdown in self.slowdowns)
        refuse_repeats("slowdowns[]", pairs, "one entry per (profile, beside)")
        self._check_running(jobs)
        return self

    def _check_running(self, jobs: dict[str, Job]) -> None:
        # What runs is kept as it is, so a malformed entry would leave the round without any valid plan. Nodes and GPUs
        # that the cluster does not list are none: they may be gone while the job still counts as running there.
        for i, running in enumerate(self.running):
            fault = running_fault(jobs[running.job], running)
            if fault is not None:
                raise ValueError(f"running[{i}].{fault}")

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
        first = self.jobs[:1]
        text = self.model_copy(update={"jobs": first}).model_dump_json(exclude_defaults=True)
        digest = hashlib.sha256()
        if first:
            before, _, text = text.partition(f'"jobs":[{first[0].model_dump_json(exclude_defaults=True)}]')
            digest.update(f'{before}"jobs":'.encode())
            for piece in canonical_list(self.jobs):
                digest.update(piece.encode())
        digest.update(text.encode())
        return digest.hexdigest()
