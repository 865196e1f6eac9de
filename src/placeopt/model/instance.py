"""The instance: one scheduling round as a file."""

import hashlib
from functools import cached_property
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from placeopt.model.base import MAX_JOBS, Count, Milliseconds, Name, Record, Thousandths
from placeopt.model.cluster import Cluster
from placeopt.model.job import Job
from placeopt.model.placement import Running
from placeopt.model.policy import Policy

FORMAT_VERSION: Literal[1] = 1


class Slowdown(Record):
    """
    Excess e(j, k) of jobs of ``profile`` beside one job of profile ``beside``, in thousandths of the solo time, by the
    closest domain that they share. A level left out counts nothing; levels: gpu, switch, socket, node.
    """

    profile: Name
    beside: Name
    gpu_thousandths: Thousandths = 0
    switch_thousandths: Thousandths = 0
    socket_thousandths: Thousandths = 0
    node_thousandths: Thousandths = 0


class Instance(Record):
    """A cluster snapshot, the running placements, all jobs (running and waiting), profiles and a default policy."""

    format_version: Literal[1] = FORMAT_VERSION
    name: Name = "unnamed"
    revision: Count = 0
    now_ms: Milliseconds = 0
    note: Annotated[str, Field(max_length=10_000)] = ""
    """Source and licence of the data, or how it was made."""
    cluster: Cluster
    jobs: Annotated[tuple[Job, ...], Field(max_length=MAX_JOBS)] = ()
    running: Annotated[tuple[Running, ...], Field(max_length=MAX_JOBS)] = ()
    slowdowns: Annotated[tuple[Slowdown, ...], Field(max_length=100_000)] = ()
    policy: Policy = Policy()

    @model_validator(mode="after")
    def _references(self) -> Self:
        jobs: dict[str, Job] = {}
        nodes = {node.id for node in self.cluster.nodes}
        queues = {queue.id for queue in self.policy.queues}
        levels = {"node"} | {domain.level for domain in self.cluster.domains}
        for i, job in enumerate(self.jobs):
            if job.id in jobs:
                raise ValueError(f"jobs[{i}].id: {job.id!r} stands twice; ids of jobs are unique")
            jobs[job.id] = job
            if job.queue is not None and queues and job.queue not in queues:
                raise ValueError(f"jobs[{i}].queue: no queue {job.queue!r} in policy.queues")
            for name in job.nodes_allowed or ():
                if name not in nodes:
                    raise ValueError(f"jobs[{i}].nodes_allowed: no node {name!r} in the cluster")
            for o, option in enumerate(job.options):
                for split in option.splits:
                    if split.level not in levels:
                        raise ValueError(
                            f"jobs[{i}].options[{o}].splits: no level {split.level!r} in the cluster; "
                            f"known: {', '.join(sorted(levels))}"
                        )
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
            for assignment in running.assignments:
                if assignment.node not in nodes:
                    raise ValueError(f"running[{i}].assignments: no node {assignment.node!r} in the cluster")
        pairs = [(slowdown.profile, slowdown.beside) for slowdown in self.slowdowns]
        if len(set(pairs)) != len(pairs):
            raise ValueError("slowdowns: a pair of profiles stands twice; one entry per (profile, beside)")
        return self

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON form, so of the content and not of the file's spelling."""
        return hashlib.sha256(self.model_dump_json(exclude_defaults=True).encode()).hexdigest()
