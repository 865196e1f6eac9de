"""Instances with other nodes, machine types or jobs, whose references are checked anew; displaced jobs wait."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from pydantic import ValidationError

from placeopt.errors import BadInput
from placeopt.formats.faults import validation_fault
from placeopt.model import Cluster, Domain, Instance, Job, Machine, Node, Running

MADE = "the instance that it makes"
"""How messages name the instance that a step leads to."""


@dataclass(frozen=True)
class Patched:
    """
    An instance after a scenario.

    Attributes
    ----------
    instance
        A new one; the base does not change.
    displaced
        Jobs that ran and wait now, since they or their nodes were changed.
    added
        Ids of the nodes that were added.
    """

    instance: Instance
    displaced: tuple[str, ...] = ()
    added: tuple[str, ...] = ()


def edit_instance(instance: Instance, **changed: object) -> Instance:
    """Return the instance with some fields changed, and its references checked; raises `BadInput` for a broken one."""
    try:
        return Instance(**{**{name: getattr(instance, name) for name in type(instance).model_fields}, **changed})
    except ValidationError as error:
        raise validation_fault(Instance, error, MADE) from None


def with_nodes(instance: Instance, nodes: Iterable[Node], **changed: object) -> Instance:
    """Return the instance with other nodes."""
    before = instance.cluster
    return edit_instance(instance, cluster=cluster_of(before.machines, before.domains, tuple(nodes)), **changed)


def with_machines(instance: Instance, machines: Iterable[Machine], nodes: Iterable[Node]) -> Instance:
    """Return the instance with other machine types and nodes."""
    return edit_instance(instance, cluster=cluster_of(tuple(machines), instance.cluster.domains, tuple(nodes)))


def cluster_of(machines: tuple[Machine, ...], domains: tuple[Domain, ...], nodes: tuple[Node, ...]) -> Cluster:
    """Return the cluster; raises `BadInput` if it contradicts itself."""
    try:
        return Cluster(machines=machines, domains=domains, nodes=nodes)
    except ValidationError as error:
        raise validation_fault(Cluster, error, MADE) from None


def without_nodes(before: Patched, gone: Iterable[str]) -> Patched:
    """Return the instance without nodes; their jobs wait."""
    instance = before.instance
    leaving = dict.fromkeys(gone)
    there = {node.id for node in instance.cluster.nodes}
    for name in leaving:
        if name not in there:
            raise BadInput(f"no node {name!r}")
    if len(leaving) == len(there):
        raise BadInput("no node would be left")
    stay = [node for node in instance.cluster.nodes if node.id not in leaving]
    displaced = [held.job for held in instance.running if any(a.node in leaving for a in held.assignments)]
    jobs = tuple(
        job
        if job.nodes_allowed is None or leaving.keys().isdisjoint(job.nodes_allowed)
        else job.model_copy(update={"nodes_allowed": tuple(n for n in job.nodes_allowed if n not in leaving)})
        for job in instance.jobs
    )
    running = without_running(instance, displaced)
    return replace(
        before,
        instance=with_nodes(instance, stay, jobs=jobs, running=running),
        displaced=(*before.displaced, *displaced),
    )


def without_running(instance: Instance, jobs: Iterable[str]) -> tuple[Running, ...]:
    """Return the running placements of other jobs than these."""
    gone = set(jobs)
    return tuple(held for held in instance.running if held.job not in gone)


def requested_gpu_milli(job: Job) -> int:
    """Return the GPU-milli that a job requests, in its largest option."""
    return max(option.workers * option.demand.gpus * option.demand.gpu_milli for option in job.options)


def job_arriving_at(job: Job, arrival_ms: int) -> Job:
    """Return a job that arrives at another time; its deadlines move with it."""
    by = arrival_ms - job.arrival_ms
    due = {
        name: max(0, value + by)
        for name in ("deadline_ms", "expected_completion_ms")
        for value in [getattr(job, name)]
        if value is not None
    }
    return job.model_copy(update={"arrival_ms": arrival_ms, **due}) if by else job
