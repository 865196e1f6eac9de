"""Steps that change the hardware: machine types, domains, nodes and their amounts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, Self

from pydantic import Field, model_validator

from placeopt.edits.gpus import with_failed_gpus
from placeopt.edits.levels import INSIDE, joined, lost_hardware
from placeopt.edits.nodes import copy_of, node_of_type
from placeopt.edits.records import changed, merged, refusal, refuse_unknown, some
from placeopt.edits.step import Ids, Step, jobs_on, on_nodes, with_cluster, with_nodes, without_running
from placeopt.model import Amounts, Domain, Instance, Machine, Node, Taint
from placeopt.model.base import Id, Labels, LabelValue, Name

MAX_ADDED = 100_000
PartId = Annotated[str, Field(min_length=1, max_length=520)]
"""Id of a domain, or of a node and of a part inside it."""
BROUGHT = "; a step add_machines brings new ones"
EMPTY = "expected 'nodes' or 'of'"


class HardwareStep(Step):
    """A step that changes the cluster; of jobs it may stop those that run there."""


class AddMachines(HardwareStep):
    """Add machine types for nodes of later steps."""

    do: Literal["add_machines"]
    machines: Annotated[tuple[Machine, ...], Field(min_length=1)]
    """Records with ids that are new."""

    def edited(self, before: Instance) -> Instance:
        """Return the round with the machine types."""
        return with_cluster(before, machines=(*before.cluster.machines, *self.machines))


class AddDomains(HardwareStep):
    """Add domains of the network, parents first, for nodes of later steps."""

    do: Literal["add_domains"]
    domains: Annotated[tuple[Domain, ...], Field(min_length=1)]
    """Records with ids that are new."""

    def edited(self, before: Instance) -> Instance:
        """Return the round with the domains."""
        return with_cluster(before, domains=(*before.cluster.domains, *self.domains))


class AddNodes(HardwareStep):
    """
    Add ``count`` nodes of a machine type, named ``prefix``-0, -1, ...; those ids must be free.

    Domain and labels are those stated here. All else is that of the node ``like``, or what all nodes of the machine
    type share.
    """

    do: Literal["add_nodes"]
    count: Annotated[int, Field(ge=1, le=MAX_ADDED)] = 1
    """How many."""
    machine: Id | None = None
    """None: that of ``like``."""
    like: Id | None = None
    """A node to copy: machine type, domain, labels, taints, price."""
    domain: Id | None = None
    """Null: that of the node ``like``, or of all nodes of the type."""
    labels: Labels | None = None
    """Null: as for ``domain``."""
    prefix: Id = "added"
    """How their ids begin."""

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
        return with_nodes(before, (*cluster.nodes, *(changed(copy_of(like, name), **fields) for name in ids)))


class PutNodes(HardwareStep):
    """Add nodes by their records, or put these in the place of the nodes of the same ids; jobs stay where they run."""

    do: Literal["put_nodes"]
    nodes: Annotated[tuple[Node, ...], Field(min_length=1)]
    """Records."""

    def edited(self, before: Instance) -> Instance:
        """Return the round with the nodes, new ones last."""
        for node in self.nodes:
            _refuse_unknown_machine(before, node.machine)
        nodes = {node.id: node for node in (*before.cluster.nodes, *self.nodes)}
        return with_nodes(before, tuple(nodes.values()))


class RemoveNodes(HardwareStep):
    """Remove nodes; jobs that run there are displaced and wait."""

    do: Literal["remove_nodes"]
    nodes: Ids
    """By id."""

    def edited(self, before: Instance) -> Instance:
        """Return the round without the nodes."""
        return without_nodes(before, self.nodes)


class Fail(HardwareStep):
    """
    Remove all nodes under domains of a level: ``node``, ``rack``, or another level of the cluster.

    With the levels inside machines (``gpu``, ``switch``, ``numa``, ``socket``) the nodes stay, and their GPUs take no
    work: a hold that no job may use (`Instance.failed_gpus`) keeps jobs off each, until a step ``remove_holds``.
    """

    do: Literal["fail"]
    level: Id
    """Level of the network, or inside machines."""
    domains: Annotated[tuple[PartId, ...], Field(min_length=1)]
    """Domains of the level; inside machines such as ``node-7/sw0``."""

    def edited(self, before: Instance) -> Instance:
        """Return the round without the hardware."""
        losses = lost_hardware(before, self.level, self.domains)
        kind = "GPUs" if self.level in INSIDE else "nodes"
        missing = next((name for name in self.domains if name not in losses), None)
        if missing is not None:
            there = some(lost_hardware(before, self.level))
            raise refusal("domains", f"no {self.level} {missing!r} with {kind}; there are: {there}")
        lost = joined(losses[name] for name in self.domains)
        return with_failed_gpus(before, lost.gpus) if lost.gpus else without_nodes(before, lost.nodes)


class ReplaceNodes(HardwareStep):
    """Change the machine type of nodes, by name or all of a type; jobs that run on changed nodes are displaced."""

    do: Literal["replace_nodes"]
    nodes: tuple[Id, ...] = ()
    """By id."""
    of: Id | None = None
    """All nodes of this machine type."""
    machine: Id
    """Their new machine type."""

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
        after = on_nodes(before, chosen, lambda node: changed(node, machine=self.machine))
        return without_running(after, jobs_on(before, chosen))


class Drain(HardwareStep):
    """Drain nodes, so that they take no new work, or let them take work again (``undrain``)."""

    do: Literal["drain", "undrain"]
    """Which of the two."""
    nodes: Ids | None = None
    """None: all nodes."""
    stop: bool = False
    """Of ``drain``: whether the jobs that run there are stopped, whole gangs; they wait."""

    @model_validator(mode="after")
    def _stop(self) -> Self:
        if self.stop and self.do == "undrain":
            raise ValueError("stop: goes with drain")
        return self

    def edited(self, before: Instance) -> Instance:
        """Return the round with the nodes drained or not."""
        after = on_nodes(before, self.nodes, lambda node: changed(node, drained=self.do == "drain"))
        there = {node.id for node in before.cluster.nodes} if self.nodes is None else set(self.nodes)
        return without_running(after, jobs_on(before, there)) if self.stop else after


class TaintNodes(HardwareStep):
    """Add a taint to nodes, or remove it (``untaint``)."""

    do: Literal["taint", "untaint"]
    taint: Taint
    """Key, value and effect."""
    nodes: Ids | None = None
    """None: all nodes."""

    def edited(self, before: Instance) -> Instance:
        """Return the round with the nodes tainted or not."""
        new = (self.taint,) if self.do == "taint" else ()

        def edit(node: Node) -> Node:
            return changed(node, taints=(*(taint for taint in node.taints if taint != self.taint), *new))

        return on_nodes(before, self.nodes, edit)


class Label(HardwareStep):
    """Set labels of nodes; a label that is null is removed."""

    do: Literal["label"]
    labels: dict[Id, LabelValue | None]
    """Label -> value, or null."""
    nodes: Ids | None = None
    """None: all nodes."""

    def edited(self, before: Instance) -> Instance:
        """Return the round with the labels changed."""

        def edit(node: Node) -> Node:
            labels = {**node.labels, **self.labels}
            return changed(node, labels={name: value for name, value in sorted(labels.items()) if value is not None})

        return on_nodes(before, self.nodes, edit)


class SetAmount(HardwareStep):
    """
    Change one amount: of nodes by their machine types, of domains, or of the cluster.

    Null: no limit; of machine types for amounts that may be unknown, such as bandwidths, else they have none of it.
    """

    do: Literal["set_amount"]
    resource: Name
    """A field of machine types, such as ``memory_mib``, or a named resource."""
    amount: Annotated[int, Field(ge=0)] | None
    """The new amount."""
    at: Literal["machine", "domain", "cluster"]
    """What the amount is of."""
    of: Ids | None = None
    """Machine types or domains by id; None: all."""

    def edited(self, before: Instance) -> Instance:
        """Return the round with the amount changed."""
        cluster = before.cluster
        if self.at == "cluster":
            return with_cluster(before, resources=self._named(cluster.resources))
        lists: dict[str, tuple[Any, ...]] = {"machines": cluster.machines, "domains": cluster.domains}
        field = f"{self.at}s"
        refuse_unknown("of", self.at, self.of or (), {one.id for one in lists[field]})
        records = tuple(self._of(one) if self.of is None or one.id in self.of else one for one in lists[field])
        return with_cluster(before, **{field: records})

    def _of(self, record: Machine | Domain) -> Machine | Domain:
        if isinstance(record, Machine) and self.resource in MACHINE_AMOUNTS:
            return merged(record, {self.resource: self.amount}, f"amount of machine type {record.id!r}")
        return changed(record, resources=self._named(record.resources))

    def _named(self, resources: Mapping[str, int]) -> Amounts:
        others = {name: amount for name, amount in resources.items() if name != self.resource}
        return Amounts({**others, **({} if self.amount is None else {self.resource: self.amount})})


MACHINE_AMOUNTS = frozenset(name for name in Machine.model_fields if name.endswith(("_millicores", "_mib", "_mbps")))
"""Fields of a machine type that are amounts."""


def without_nodes(before: Instance, gone: Iterable[str]) -> Instance:
    """Return the round without nodes; their jobs wait."""
    leaving = dict.fromkeys(gone)
    there = {node.id for node in before.cluster.nodes}
    refuse_unknown("nodes", "node", leaving, there)
    if len(leaving) == len(there):
        raise refusal("", "no node would be left")
    after = with_nodes(before, tuple(node for node in before.cluster.nodes if node.id not in leaving))
    return without_running(after, jobs_on(before, leaving))


def _refuse_unknown_machine(before: Instance, machine: str) -> None:
    refuse_unknown("machine", "machine type", [machine], [one.id for one in before.cluster.machines], BROUGHT)
