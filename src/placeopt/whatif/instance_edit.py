"""Instances with other nodes, machine types or jobs, whose references are checked again; displaced jobs wait."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from pydantic import ValidationError

from placeopt.documents.faults import validation_fault
from placeopt.errors import BadInput
from placeopt.model import Cluster, Instance, Job, Machine, Node, Record, Running, WorkerGpus
from placeopt.model.base import trusted

R = TypeVar("R", bound=Record)

MADE = "the instance that it makes"
"""How messages name the instance that a step leads to."""


@dataclass(frozen=True)
class Patched:
    """
    An instance after a scenario, a new one.

    Beside it jobs that ran and wait now, since they or their nodes were changed, and the ids of the nodes added.
    """

    instance: Instance
    displaced: tuple[str, ...] = ()
    added: tuple[str, ...] = ()
    checked: bool = True
    """Whether references are checked at every edit; else whoever edits does so once, at the end."""

    def edited(self, displaced: Iterable[str] = (), added: Iterable[str] = (), **changed: object) -> Patched:
        """Return it with fields of the instance changed; displaced jobs wait."""
        gone = tuple(displaced)
        if gone:
            changed["running"] = without_running(self.instance, gone)
        instance = edit_instance(self.instance, **changed) if self.checked else _replaced(self.instance, changed)
        return replace(self, instance=instance, displaced=(*self.displaced, *gone), added=(*self.added, *added))

    def with_nodes(
        self, nodes: Iterable[Node], displaced: Iterable[str] = (), added: Iterable[str] = (), **changed: object
    ) -> Patched:
        """Return it with other nodes."""
        return self.edited(displaced, added, cluster=self.cluster_with(nodes=tuple(nodes)), **changed)

    def cluster_with(self, **changed: object) -> Cluster:
        """Return its cluster with some fields changed."""
        cluster = self.instance.cluster
        return edit_cluster(cluster, **changed) if self.checked else _replaced(cluster, changed)


def edit_instance(instance: Instance, **changed: object) -> Instance:
    """Return the instance with some fields changed, and its references checked; raises `BadInput` for a broken one."""
    try:
        return Instance(**{**{name: getattr(instance, name) for name in type(instance).model_fields}, **changed})
    except ValidationError as error:
        raise validation_fault(Instance, error, MADE) from None


def with_nodes(instance: Instance, nodes: Iterable[Node]) -> Instance:
    """Return the instance with other nodes."""
    return Patched(instance).with_nodes(nodes).instance


def edit_cluster(cluster: Cluster, **changed: object) -> Cluster:
    """Return the cluster with some fields changed; raises `BadInput` if it contradicts itself."""
    try:
        return Cluster(**{**dict(cluster), **changed})
    except ValidationError as error:
        raise validation_fault(Cluster, error, MADE) from None


def _replaced(record: R, changed: dict[str, object]) -> R:
    """Return the record with some fields changed, unchecked; what was derived from the former ones is not kept."""
    return trusted(type(record), {**dict(record), **changed})


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
    return before.with_nodes(stay, displaced)


def without_running(instance: Instance, jobs: Iterable[str]) -> tuple[Running, ...]:
    """Return the running placements of other jobs than these."""
    gone = set(jobs)
    return tuple(held for held in instance.running if held.job not in gone)


def requested_gpu_milli(job: Job) -> int:
    """Return the GPU-milli that a job requests, in its largest option."""
    return max(option.gpu_milli for option in job.options)


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


def without_gpus(before: Patched, gone: Mapping[str, Iterable[int]]) -> Patched:
    """
    Return the instance with GPUs taken out of nodes; CPU and memory stay, and so do jobs on the other GPUs.

    Each such node gets a machine type without these GPUs. The remaining GPUs are renumbered from 0, also in the
    placements of running jobs.
    """
    instance = before.instance
    lost = {node: frozenset(gpus) for node, gpus in gone.items()}
    machines = dict(instance.cluster.machine_types)
    made: dict[tuple[str, frozenset[int]], Machine] = {}
    nodes = []
    for node in instance.cluster.nodes:
        gpus = lost.get(node.id)
        if gpus:
            kind = (node.machine, gpus)
            if kind not in made:
                made[kind] = _less(machines[node.machine], gpus, machines)
                machines[made[kind].id] = made[kind]
            nodes.append(node.model_copy(update={"machine": made[kind].id}))
        else:
            nodes.append(node)
    sizes = {node.id: len(machines[node.machine].gpus) for node in instance.cluster.nodes}
    new_index = {
        name: {gpu: i for i, gpu in enumerate(g for g in range(sizes[name]) if g not in gpus)}
        for name, gpus in lost.items()
    }
    displaced = [
        held.job
        for held in instance.running
        if any(int(gpu) in lost.get(assignment.node, ()) for assignment in held.assignments for gpu in assignment.gpus)
    ]
    running = tuple(_renumbered(held, new_index) for held in without_running(instance, displaced))
    cluster = before.cluster_with(machines=tuple(machines.values()), nodes=tuple(nodes))
    return replace(before.edited(cluster=cluster, running=running), displaced=(*before.displaced, *displaced))


def _renumbered(held: Running, new_index: Mapping[str, Mapping[int, int]]) -> Running:
    assignments = []
    for assignment in held.assignments:
        number = new_index.get(assignment.node)
        if number is not None:
            workers = tuple(
                WorkerGpus(rank=w.rank, gpus=tuple(number[gpu] for gpu in w.gpus)) for w in assignment.workers
            )
            shares = {str(number[int(gpu)]): milli for gpu, milli in assignment.gpus.items()}
            assignment = assignment.model_copy(update={"workers": workers, "gpus": shares})
        assignments.append(assignment)
    return held.model_copy(update={"assignments": tuple(assignments)})


def _less(machine: Machine, gone: frozenset[int], taken: Mapping[str, Machine]) -> Machine:
    """Return the machine type without some GPUs, under a name that is free."""
    stay = [i for i in range(len(machine.gpus)) if i not in gone]
    number = {gpu: i for i, gpu in enumerate(stay)}
    fields: dict[str, Any] = {
        "gpus": tuple(machine.gpus[i] for i in stay),
        "links": tuple(
            link.model_copy(update={"gpus": (number[link.gpus[0]], number[link.gpus[1]])})
            for link in machine.links
            if not gone & set(link.gpus)
        ),
    }
    if machine.gpu_distance_matrix is not None:
        fields["gpu_distance_matrix"] = tuple(tuple(machine.gpu_distance_matrix[a][b] for b in stay) for a in stay)
    words = "-".join(map(str, sorted(gone)))
    name = f"{machine.id}-less-{words}"
    while name in taken or len(name) > 253:
        name = f"less-{hashlib.sha256(name.encode()).hexdigest()[:16]}"
    return Machine(**{**dict(machine), **fields, "id": name})
