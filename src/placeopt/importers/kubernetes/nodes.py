"""Kubernetes nodes: what each has, its labels and taints, and the cluster that they are."""

from __future__ import annotations

import re
from collections.abc import Container, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import floor
from typing import TYPE_CHECKING

from placeopt.documents.faults import make_record
from placeopt.errors import BadInput
from placeopt.importers.import_notes import ImportNotes
from placeopt.importers.json_entry import JsonEntry
from placeopt.importers.kubernetes.node_selectors import taint
from placeopt.importers.kubernetes.objects import unreadable_field
from placeopt.importers.kubernetes.resources import MAX_AMOUNT, in_units, may_be_gpu, quantity
from placeopt.model import Cluster, Domain, Gpu, Machine, Node, Origin, Profile, Taint

if TYPE_CHECKING:
    from placeopt.importers.kubernetes.topologies import Levels

HAMI = re.compile(r"hami\.io/node-[a-z0-9-]*register$")
"""Annotations of a node whose GPUs HAMi shares: its plugin advertises each GPU several times."""
MOST_MILLICORES = 100_000_000


@dataclass
class KubernetesNode:
    """A node before its machine type is known."""

    entry: JsonEntry
    name: str
    uid: str | None = None
    labels: dict[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    drained: bool = False
    gpus: int = 0
    stated: frozenset[str] = frozenset()
    """Names of the resources that it states, also those of which it has none."""
    amounts: dict[str, Fraction] = field(default_factory=dict)
    """What it has for jobs of each resource but GPUs, in the units of records: without what daemons hold."""
    profiles: tuple[tuple[Profile, ...], ...] = ()
    """Of the first GPUs, where claims ask for parts of them."""

    def add_devices(self, devices: Mapping[str, int], resource: str) -> None:
        """Add devices that claims take, unless the node states them as a resource of its own."""
        for name, count in devices.items():
            if name == resource:
                self.gpus = self.gpus or count
            elif not self.amounts.get(name):
                self.amounts[name] = Fraction(count)
        self.stated |= frozenset(devices)

    def take(self, amounts: Mapping[str, Fraction | int]) -> None:
        """Subtract what no job may have."""
        for name, amount in amounts.items():
            if name in self.amounts:
                self.amounts[name] -= amount


def read_node(entry: JsonEntry, resource: str, notes: ImportNotes) -> KubernetesNode:
    """Return one node; an unreadable node, or one whose GPUs may be counted twice, is drained and counted."""
    name = entry.entry("metadata").text("name")
    try:
        node = _read_node(entry, name, resource)
    except BadInput as error:
        notes.drain(f"nodes {unreadable_field(entry, error)}", name)
        return KubernetesNode(entry, name, drained=True)
    twice = [other for other, amount in node.amounts.items() if amount and may_be_gpu(other, resource)]
    for other in twice:
        del node.amounts[other]
    if node.gpus and twice:
        notes.drain(f"nodes with {resource} and {', '.join(sorted(twice))}, which may be the same GPUs", name)
    elif node.gpus and any(HAMI.match(key) for key in entry.entry("metadata").texts("annotations")):
        notes.drain(f"nodes on which HAMi counts parts of GPUs as {resource}", name)
    return node


def _read_node(entry: JsonEntry, name: str, resource: str) -> KubernetesNode:
    metadata, spec, status = entry.entry("metadata"), entry.entry("spec"), entry.entry("status")
    room = status.entry("allocatable" if "allocatable" in status else "capacity")
    counters = {key: quantity(room, key) for key in room.names()}
    stated = frozenset(counters)
    gpus = counters.pop(resource, Fraction(0))
    if gpus.denominator != 1 or gpus > 1024:
        raise room.bad(resource, "a number of GPUs up to 1024")
    amounts = in_units(counters)
    for key, most in (("cpu", MOST_MILLICORES), ("memory", MAX_AMOUNT)):
        if amounts.get(key, 0) > most:
            raise room.bad(key, "no more than a node can have")
    conditions = {one.text("type"): one.text("status") for one in status.entries("conditions")}
    taints = list(filter(None, map(taint, spec.entries("taints"))))
    if cordoned := spec.flag("unschedulable"):
        taints = [one for one in taints if one.key != "node.kubernetes.io/unschedulable"]
    return KubernetesNode(
        entry,
        name,
        metadata.text("uid", "") or None,
        metadata.texts("labels"),
        tuple(dict.fromkeys(taints)),
        cordoned or conditions.get("Ready", "True") != "True" or "deletionTimestamp" in metadata,
        int(gpus),
        stated,
        amounts,
    )


def cluster_of(nodes: Mapping[str, KubernetesNode], levels: Levels, asked: Container[str], where: str) -> Cluster:
    """
    Return the cluster, with one machine type for each shape, without what daemons hold.

    ``asked``: Resources that machine types state; those that no job asks for would only divide nodes into more types.
    """
    machines: dict[tuple[object, ...], Machine] = {}
    domains: dict[str, Domain] = {}
    records = []
    for node in nodes.values():
        amounts = {
            name: max(0, min(MAX_AMOUNT, floor(amount)))
            for name, amount in node.amounts.items()
            if name in asked or name in ("cpu", "memory")
        }
        cpu, memory = (amounts.pop(name, 0) for name in ("cpu", "memory"))
        model = (node.labels.get("nvidia.com/gpu.product") or "gpu") if node.gpus else ""
        size = node.labels.get("nvidia.com/gpu.memory", "0") if node.gpus else "0"
        shape = (model, node.gpus, node.profiles, cpu, memory, size, *sorted(amounts.items()))
        if shape not in machines:
            kind = f"{node.gpus}x{model}" if node.gpus else "cpu"
            memory_mib = int(size) if size.isdecimal() and len(size) < 9 else 0
            of_gpus = (*node.profiles, *((),) * (node.gpus - len(node.profiles)))
            gpu = make_record(Gpu, node.entry.where, model=model or "gpu", memory_mib=memory_mib)
            machines[shape] = make_record(
                Machine,
                node.entry.where,
                id=f"type{len(machines)}-{kind}",
                cpu_millicores=cpu,
                memory_mib=memory,
                gpus=tuple(gpu.model_copy(update={"profiles": of}) if of else gpu for of in of_gpus),
                source="kubernetes",
                resources={name: amount for name, amount in amounts.items() if amount},
            )
        origin = None if node.uid is None else make_record(Origin, node.entry.where, name=node.name, id=node.uid)
        records.append(
            make_record(
                Node,
                node.entry.where,
                id=node.name,
                machine=machines[shape].id,
                domain=levels.domain(node, domains),
                labels=node.labels,
                taints=node.taints,
                drained=node.drained,
                origin=origin,
            )
        )
    parts = {"machines": tuple(machines.values()), "domains": tuple(domains.values()), "nodes": tuple(records)}
    return make_record(Cluster, where, **parts)
