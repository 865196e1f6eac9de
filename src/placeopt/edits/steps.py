"""The steps: records of patch files, each with the edit that it makes."""

from __future__ import annotations

import random
from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field

from placeopt.documents.faults import make_record
from placeopt.edits.gpus import without_gpus
from placeopt.edits.levels import INSIDE, joined, lost_hardware
from placeopt.edits.nodes import copy_of, free_prefix, node_of_type
from placeopt.edits.records import changed, job_arriving_at, merged, refusal, refuse_unknown, some
from placeopt.errors import BadArgument
from placeopt.model import Amounts, Domain, Instance, Job, Machine, Node, Record, Taint
from placeopt.model.base import FormatVersion, Id, Labels, LabelValue, Name

MAX_ADDED = 100_000
BROUGHT = "; a step add_machines brings new ones"
EMPTY = "expected 'nodes' or 'of'"
Nodes = Annotated[tuple[Id, ...], Field(min_length=1)] | None
"""Nodes by id; None: all."""


class Step(Record):
    """A step over a round."""

    do: str
    """Kind of step."""

    @abstractmethod
    def edited(self, before: Instance) -> Instance:
        """Return the round after the step, unchecked; raises `BadInput` where that is impossible."""


class AddMachines(Step):
    """Add machine types for nodes of later steps."""

    do: Literal["add_machines"]
    machines: Annotated[tuple[Machine, ...], Field(min_length=1)]

    def edited(self, before: Instance) -> Instance:
        """Return the round with the machine types."""
        return _with_cluster(before, machines=(*before.cluster.machines, *self.machines))


class AddDomains(Step):
    """Add domains of the network, parents first, for nodes of later steps."""

    do: Literal["add_domains"]
    domains: Annotated[tuple[Domain, ...], Field(min_length=1)]

    def edited(self, before: Instance) -> Instance:
        """Return the round with the domains."""
        return _with_cluster(before, domains=(*before.cluster.domains, *self.domains))


class AddNodes(Step):
    """
    Add ``count`` nodes of a machine type, named ``prefix``-0, -1, ...; those ids must be free.

    Domain and labels are those stated here. All else is that of the node ``like``, or what all nodes of the machine
    type share.
    """

    do: Literal["add_nodes"]
    count: Annotated[int, Field(ge=1, le=MAX_ADDED)] = 1
    machine: Id | None = None
    """None: that of ``like``."""
    like: Id | None = None
    """A node to copy: machine type, domain, labels, taints, price."""
    domain: Id | None = None
    labels: Labels | None = None
    prefix: Id = "added"

    def edited(self, before: Instance) -> Instance:
        """Return the round with the nodes."""
        cluster = before.cluster
        there = {node.id: node for node in cluster.nodes}
        if self.like is not None:
            refuse_unknown("like", "node", [self.like], there)
        like = None if self.like is None else there[self.like]
        machine = self.machine or (like.machine if like else None)
        if machine is None:
            raise refusal("machine", "expected a machine type, or 'like' with a node to copy")
        _refuse_unknown_machine(before, machine)
        stated = {"domain": self.domain, "labels": self.labels}
        fields = {"machine": machine, **{name: value for name, value in stated.items() if value is not None}}
        ids = [f"{self.prefix}-{i}" for i in range(self.count)]
        clash = next((name for name in ids if name in there), None)
        if clash is not None:
            raise refusal("prefix", f"a node {clash!r} is there already; choose another prefix")
        like = like or node_of_type(cluster, machine, ids[0])
        return _with_nodes(before, (*cluster.nodes, *(changed(copy_of(like, name), **fields) for name in ids)))


class RemoveNodes(Step):
    """Remove nodes; jobs that run there are displaced and wait."""

    do: Literal["remove_nodes"]
    nodes: Annotated[tuple[Id, ...], Field(min_length=1)]

    def edited(self, before: Instance) -> Instance:
        """Return the round without the nodes."""
        return without_nodes(before, self.nodes)


class Fail(Step):
    """
    Remove all nodes under domains of a level: ``node``, ``rack``, or another level of the cluster.

    With the levels inside machines (``gpu``, ``switch``, ``numa``, ``socket``) only the GPUs are removed.
    """

    do: Literal["fail"]
    level: Id
    domains: Annotated[tuple[Id, ...], Field(min_length=1)]

    def edited(self, before: Instance) -> Instance:
        """Return the round without the hardware."""
        losses = lost_hardware(before, self.level)
        kind = "GPUs" if self.level in INSIDE else "nodes"
        missing = next((name for name in self.domains if name not in losses), None)
        if missing is not None:
            raise refusal("domains", f"no {self.level} {missing!r} with {kind}; there are: {some(losses)}")
        lost = joined(losses[name] for name in self.domains)
        return without_gpus(before, lost.gpus) if lost.gpus else without_nodes(before, lost.nodes)


class ReplaceNodes(Step):
    """Change the machine type of nodes, by name or all of a type; jobs that run on changed nodes are displaced."""

    do: Literal["replace_nodes"]
    nodes: tuple[Id, ...] = ()
    of: Id | None = None
    """All nodes of this machine type."""
    machine: Id

    def edited(self, before: Instance) -> Instance:
        """Return the round with the nodes exchanged."""
        nodes = before.cluster.nodes
        refuse_unknown("nodes", "node", self.nodes, {node.id for node in nodes})
        chosen = {*self.nodes, *(node.id for node in nodes if node.machine == self.of)}
        if not chosen:
            raise refusal("of" if self.of else "", f"no node is of machine type {self.of!r}" if self.of else EMPTY)
        _refuse_unknown_machine(before, self.machine)
        chosen &= {node.id for node in nodes if node.machine != self.machine}
        if not chosen:
            raise refusal("machine", f"the nodes are of type {self.machine!r} already")
        after = _on_nodes(before, chosen, lambda node: changed(node, machine=self.machine))
        return _without_running(after, _jobs_on(before, chosen))


class Drain(Step):
    """Drain nodes, so that they take no new work, or let them take work again (``undrain``)."""

    do: Literal["drain", "undrain"]
    nodes: Nodes = None
    """None: all nodes."""

    def edited(self, before: Instance) -> Instance:
        """Return the round with the nodes drained or not."""
        return _on_nodes(before, self.nodes, lambda node: changed(node, drained=self.do == "drain"))


class TaintNodes(Step):
    """Add a taint to nodes, or remove it (``untaint``)."""

    do: Literal["taint", "untaint"]
    taint: Taint
    nodes: Nodes = None
    """None: all nodes."""

    def edited(self, before: Instance) -> Instance:
        """Return the round with the nodes tainted or not."""
        new = (self.taint,) if self.do == "taint" else ()

        def edit(node: Node) -> Node:
            return changed(node, taints=(*(taint for taint in node.taints if taint != self.taint), *new))

        return _on_nodes(before, self.nodes, edit)


class Label(Step):
    """Set labels of nodes; a label that is null is removed."""

    do: Literal["label"]
    labels: dict[Id, LabelValue | None]
    nodes: Nodes = None
    """None: all nodes."""

    def edited(self, before: Instance) -> Instance:
        """Return the round with the labels changed."""

        def edit(node: Node) -> Node:
            labels = {**node.labels, **self.labels}
            return changed(node, labels={name: value for name, value in sorted(labels.items()) if value is not None})

        return _on_nodes(before, self.nodes, edit)


class SetAmount(Step):
    """
    Change one amount: of nodes by their machine types, of domains, or of the cluster.

    Null: no limit; of machine types for amounts that may be unknown, such as bandwidths, else they have none of it.
    """

    do: Literal["set_amount"]
    resource: Name
    """A field of machine types, such as ``memory_mib``, or a named resource."""
    amount: Annotated[int, Field(ge=0)] | None
    at: Literal["machine", "domain", "cluster"]
    of: Annotated[tuple[Id, ...], Field(min_length=1)] | None = None
    """Machine types or domains by id; None: all."""

    def edited(self, before: Instance) -> Instance:
        """Return the round with the amount changed."""
        cluster = before.cluster
        if self.at == "cluster":
            return _with_cluster(before, resources=self._named(cluster.resources))
        lists: dict[str, tuple[Any, ...]] = {"machines": cluster.machines, "domains": cluster.domains}
        field = f"{self.at}s"
        refuse_unknown("of", self.at, self.of or (), {one.id for one in lists[field]})
        records = tuple(self._of(one) if self.of is None or one.id in self.of else one for one in lists[field])
        return _with_cluster(before, **{field: records})

    def _of(self, record: Machine | Domain) -> Machine | Domain:
        if isinstance(record, Machine) and self.resource in MACHINE_AMOUNTS:
            return merged(record, {self.resource: self.amount}, f"amount of machine type {record.id!r}")
        return changed(record, resources=self._named(record.resources))

    def _named(self, resources: Mapping[str, int]) -> Amounts:
        others = {name: amount for name, amount in resources.items() if name != self.resource}
        return Amounts({**others, **({} if self.amount is None else {self.resource: self.amount})})


MACHINE_AMOUNTS = frozenset(name for name in Machine.model_fields if name.endswith(("_millicores", "_mib", "_mbps")))
"""Fields of a machine type that are amounts."""


class SetPolicy(Step):
    """Change fields of the policy: a JSON merge patch (RFC 7396)."""

    do: Literal["set_policy"]
    fields: dict[str, Any]

    def edited(self, before: Instance) -> Instance:
        """Return the round with the policy."""
        return changed(before, policy=merged(before.policy, self.fields, "fields"))


class ChangeQueue(Step):
    """Change fields of a queue of the policy, such as one quota: a JSON merge patch (RFC 7396)."""

    do: Literal["change_queue"]
    queue: Id
    fields: dict[str, Any]

    def edited(self, before: Instance) -> Instance:
        """Return the round with the queue."""
        policy = before.policy
        refuse_unknown("queue", "queue", [self.queue], [queue.id for queue in policy.queues])
        queues = tuple(
            merged(queue, self.fields, "fields") if queue.id == self.queue else queue for queue in policy.queues
        )
        return changed(before, policy=changed(policy, queues=queues))


class ChangeJob(Step):
    """Change fields of a job: a JSON merge patch (RFC 7396). A running job is displaced."""

    do: Literal["change_job"]
    job: Id
    fields: dict[str, Any]

    def edited(self, before: Instance) -> Instance:
        """Return the round with the job."""
        old = next((job for job in before.jobs if job.id == self.job), None)
        if old is None:
            raise refusal("job", f"no job {self.job!r}")
        new = merged(old, self.fields, "fields")
        if new.id != old.id:
            raise refusal("fields.id", "a job keeps its id")
        jobs = tuple(new if job.id == self.job else job for job in before.jobs)
        return _without_running(changed(before, jobs=jobs), {self.job})


class AddJobs(Step):
    """Add waiting jobs."""

    do: Literal["add_jobs"]
    jobs: Annotated[tuple[Job, ...], Field(min_length=1)]

    def edited(self, before: Instance) -> Instance:
        """Return the round with the jobs."""
        return changed(before, jobs=(*before.jobs, *self.jobs))


class RemoveJobs(Step):
    """Remove jobs, running or waiting."""

    do: Literal["remove_jobs"]
    jobs: Annotated[tuple[Id, ...], Field(min_length=1)]

    def edited(self, before: Instance) -> Instance:
        """Return the round without the jobs."""
        refuse_unknown("jobs", "job", self.jobs, {job.id for job in before.jobs})
        gone = set(self.jobs)
        jobs = tuple(job for job in before.jobs if job.id not in gone)
        return _without_running(changed(before, jobs=jobs), gone)


class Stop(Step):
    """Stop running jobs; they wait."""

    do: Literal["stop"]
    jobs: Annotated[tuple[Id, ...], Field(min_length=1)]

    def edited(self, before: Instance) -> Instance:
        """Return the round in which the jobs wait."""
        refuse_unknown("jobs", "running job", self.jobs, {held.job for held in before.running})
        return _without_running(before, set(self.jobs))


class RemoveHolds(Step):
    """Release room that is held without a job."""

    do: Literal["remove_holds"]
    holds: Annotated[tuple[Id, ...], Field(min_length=1)]

    def edited(self, before: Instance) -> Instance:
        """Return the round without the holds."""
        refuse_unknown("holds", "hold", self.holds, {hold.id for hold in before.holds})
        return changed(before, holds=tuple(hold for hold in before.holds if hold.id not in self.holds))


class ScaleDemand(Step):
    """
    Draw waiting jobs until all jobs request ``percent`` of the cluster's GPUs.

    As in FGD's experiments (Weng et al., ATC'23): copies of waiting jobs, drawn uniformly with replacement, are added
    until the next one would exceed the target; where the jobs exceed it already, random ones are removed. Running jobs
    count too.
    """

    do: Literal["scale_demand"]
    percent: Annotated[int, Field(ge=0, le=1000)]
    seed: Annotated[int, Field(ge=0)] = 0

    def edited(self, before: Instance) -> Instance:
        """Return the round with other waiting jobs."""
        target = 10 * self.percent * sum(before.cluster.gpus_by_node.values())  # GPU-milli
        runs = {held.job for held in before.running}
        waiting = [job for job in before.jobs if job.id not in runs]
        if not waiting:
            raise refusal("", "no waiting jobs to draw from")
        draw = random.Random(self.seed)  # noqa: S311 - repeatable, not secret
        jobs = list(before.jobs)
        asked = sum(job.gpu_milli for job in jobs)
        if asked > target:
            draw.shuffle(waiting)
            gone = set()
            for job in waiting:
                if asked <= target:
                    break
                gone.add(job.id)
                asked -= job.gpu_milli
            jobs = [job for job in jobs if job.id not in gone]
        elif not any(job.gpu_milli for job in waiting):
            raise refusal("", "the waiting jobs ask for no GPUs; their demand cannot be scaled")
        used, number = {job.id for job in jobs}, 0
        while asked <= target:
            job = draw.choice(waiting)
            asked += job.gpu_milli
            if asked > target:
                break
            while f"{job.id}+{number}" in used:
                number += 1
            jobs.append(job.model_copy(update={"id": f"{job.id}+{number}"}))
            number += 1
        return changed(before, jobs=tuple(jobs))


class ScaleArrivals(Step):
    """
    Change the rate of arrivals to ``percent``: all arrival times are divided by it.

    Deadlines keep their distance from the arrival. For traces; in a round no job arrives any more.
    """

    do: Literal["scale_arrivals"]
    percent: Annotated[int, Field(ge=1, le=1000)]

    def edited(self, before: Instance) -> Instance:
        """Return the round with jobs of other arrival times."""
        return changed(
            before, jobs=tuple(job_arriving_at(job, 100 * job.arrival_ms // self.percent) for job in before.jobs)
        )


AnyStep = Annotated[
    AddMachines
    | AddDomains
    | AddNodes
    | RemoveNodes
    | Fail
    | ReplaceNodes
    | Drain
    | TaintNodes
    | Label
    | SetAmount
    | SetPolicy
    | ChangeQueue
    | ChangeJob
    | AddJobs
    | RemoveJobs
    | Stop
    | RemoveHolds
    | ScaleDemand
    | ScaleArrivals,
    Field(discriminator="do"),
]


class Patch(Record):
    """A scenario: steps, carried out one after the other on a copy of a round."""

    document: Literal["patch"] = "patch"
    """What the file is."""
    format_version: FormatVersion = 2
    name: Name = "scenario"
    note: Annotated[str, Field(max_length=10_000)] = ""
    steps: tuple[AnyStep, ...] = ()


def without_nodes(before: Instance, gone: Iterable[str]) -> Instance:
    """Return the round without nodes; their jobs wait."""
    leaving = dict.fromkeys(gone)
    there = {node.id for node in before.cluster.nodes}
    refuse_unknown("nodes", "node", leaving, there)
    if len(leaving) == len(there):
        raise refusal("", "no node would be left")
    after = _with_nodes(before, tuple(node for node in before.cluster.nodes if node.id not in leaving))
    return _without_running(after, _jobs_on(before, leaving))


def _with_cluster(before: Instance, **fields: object) -> Instance:
    return changed(before, cluster=changed(before.cluster, **fields))


def _with_nodes(before: Instance, nodes: tuple[Node, ...]) -> Instance:
    return _with_cluster(before, nodes=nodes)


def _on_nodes(before: Instance, nodes: Collection[str] | None, edit: Callable[[Node], Node]) -> Instance:
    """Return the round with some nodes changed; None: all."""
    there = before.cluster.nodes
    refuse_unknown("nodes", "node", nodes or (), {node.id for node in there})
    chosen = None if nodes is None else set(nodes)
    return _with_nodes(before, tuple(edit(node) if chosen is None or node.id in chosen else node for node in there))


def _jobs_on(before: Instance, nodes: Collection[str]) -> set[str]:
    return {held.job for held in before.running if any(part.node in nodes for part in held.assignments)}


def _without_running(before: Instance, jobs: Collection[str]) -> Instance:
    return changed(before, running=tuple(held for held in before.running if held.job not in jobs))


def _refuse_unknown_machine(before: Instance, machine: str) -> None:
    refuse_unknown("machine", "machine type", [machine], [one.id for one in before.cluster.machines], BROUGHT)


def more_nodes(before: Instance, node_type: str, count: int = 1, *, mark: str = "") -> AddNodes:
    """
    Return the step that adds nodes of a machine type, or copies of a node; their ids are free.

    ``mark`` keeps apart the nodes of several such steps. Raises `BadArgument` where there is no such type or node.
    """
    is_node = any(node.id == node_type for node in before.cluster.nodes)
    types = [machine.id for machine in before.cluster.machines]
    if not is_node and node_type not in types:
        known = some(types)
        raise BadArgument(f"node type {node_type!r}: no machine type and no node of that name; machine types: {known}")
    place = {"like" if is_node else "machine": node_type}
    prefix = free_prefix(before.cluster) + mark
    return make_record(AddNodes, "nodes added", do="add_nodes", count=count, prefix=prefix, **place)
