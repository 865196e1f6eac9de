"""Kubernetes nodes: capacity, GPUs, labels, taints, and the domains that labels define."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import floor
from typing import NamedTuple

from placeopt.documents.faults import make_record
from placeopt.errors import BadInput
from placeopt.importers.import_notes import ImportNotes
from placeopt.importers.json_entry import JsonEntry
from placeopt.importers.kubernetes.node_selectors import taint
from placeopt.importers.kubernetes.pods import content_key, picked, unreadable_field
from placeopt.importers.kubernetes.resources import MAX_AMOUNT, in_units, may_be_gpu, quantity
from placeopt.model import Cluster, Domain, Gpu, Machine, Node, Origin, Taint
from placeopt.model.cluster import RESERVED_LEVELS

LEVELS: tuple[Mapping[str, str], ...] = (
    {"topology.kubernetes.io/region": "region", "topology.kubernetes.io/zone": "zone"},
    {"topology.kubernetes.io/block": "block", "topology.kubernetes.io/rack": "rack"},
    {"cloud.provider.com/topology-block": "block", "cloud.provider.com/topology-rack": "rack"},
    {
        "cloud.google.com/gce-topology-block": "block",
        "cloud.google.com/gce-topology-subblock": "rack",
        "cloud.google.com/gce-topology-host": "host",
    },
    {
        "oci.oraclecloud.com/rdma.hpc_island_id": "island",
        "oci.oraclecloud.com/rdma.network_block_id": "network-block",
        "oci.oraclecloud.com/rdma.local_block_id": "local-block",
    },
    {f"topology.k8s.aws/network-node-layer-{n}": f"layer-{n}" for n in (1, 2, 3, 4)},
    {f"network.topology.nvidia.com/{level}": level for level in ("core", "spine", "leaf")},
    {f"fabric.topograph.run/tier-{n}": f"tier-{n}" for n in (4, 3, 2, 1, 0)},
    {"network.topology.nvidia.com/accelerator": "accelerator"},
    {"accelerator.topograph.run/domain": "accelerator"},
    {"topology.k8s.aws/ultraserver-id": "ultraserver"},
    {"nvidia.com/gpu.clique": "clique"},
)
"""
Topology labels -> level, of each source from the top down: Kubernetes, Kueue's examples, Google, Oracle, AWS, NVIDIA's
topograph and GPU feature discovery. Levels of two sources nest by their values, under region and zone.
"""
LEVEL_OF = {key: level for source in LEVELS for key, level in source.items()}
HOSTNAME = "kubernetes.io/hostname"
HAMI = re.compile(r"hami\.io/node-[a-z0-9-]*register$")
"""Annotations of a node whose GPUs HAMi shares: its plugin advertises each GPU several times."""
MOST_MILLICORES = 100_000_000


@dataclass
class NodeCapacity:
    """A node before its machine type is known: its allocatable resources."""

    entry: JsonEntry
    name: str
    labels: dict[str, str]
    gpus: int
    taints: tuple[Taint, ...]
    drained: bool
    stated: frozenset[str] = frozenset()
    """Names of the resources that it states, also those of which it has none."""
    amounts: dict[str, Fraction] = field(default_factory=dict)
    """What it has for jobs of each resource but GPUs, in the units of records: without what daemons hold."""
    uid: str | None = None
    exclusive: Counter[str] = field(default_factory=Counter)
    """What daemons take of names of which all nodes have as much (`ExclusiveAmounts`)."""

    def add_devices(self, devices: Mapping[str, int], resource: str) -> None:
        """Add devices that claims take, unless the node states them as a resource of its own."""
        for name, count in devices.items():
            if name == resource:
                self.gpus = self.gpus or count
            elif not self.amounts.get(name):
                self.amounts[name] = Fraction(count)
        self.stated |= frozenset(devices)

    def take(self, amounts: Mapping[str, Fraction]) -> None:
        """Subtract what no job may have."""
        for name, amount in amounts.items():
            if name in self.amounts:
                self.amounts[name] -= amount


class NodeContent(NamedTuple):
    """What a node has and says but for its name and labels; one object for all nodes with equal content."""

    gpus: int
    taints: tuple[Taint, ...]
    drained: bool
    stated: frozenset[str]
    amounts: Mapping[str, Fraction]


Known = dict[object, NodeContent]


def read_node(entry: JsonEntry, resource: str, notes: ImportNotes, known: Known) -> NodeCapacity:
    """
    Return one node; an unreadable node, or one whose GPUs may be counted twice, is drained and counted.

    ``known``: What other nodes have, by content; it grows.
    """
    name = entry.entry("metadata").text("name")
    try:
        node = _read_node(entry, name, resource, known)
    except BadInput as error:
        notes.drain(f"nodes {unreadable_field(entry, error)}", name)
        return NodeCapacity(entry, name, {}, 0, (), drained=True)
    twice = [other for other, amount in node.amounts.items() if amount and may_be_gpu(other, resource)]
    for other in twice:
        del node.amounts[other]
    if node.gpus and twice:
        notes.drain(f"nodes with {resource} and {', '.join(sorted(twice))}, which may be the same GPUs", name)
    elif node.gpus and any(HAMI.match(key) for key in entry.entry("metadata").texts("annotations")):
        notes.drain(f"nodes on which HAMi counts parts of GPUs as {resource}", name)
    return node


def _read_node(entry: JsonEntry, name: str, resource: str, known: Known) -> NodeCapacity:
    metadata, spec, status = entry.entry("metadata"), entry.entry("spec"), entry.entry("status")
    conditions = picked(status.raw("conditions"), ("type", "status"))  # beside them stand times
    key = content_key((status.raws(("allocatable", "capacity")), conditions, spec.raws(("taints", "unschedulable"))))
    if key not in known:
        known[key] = _read_content(spec, status, resource)
    content = known[key]
    return NodeCapacity(
        entry,
        name,
        metadata.texts("labels"),
        content.gpus,
        content.taints,
        content.drained or "deletionTimestamp" in metadata,
        content.stated,
        dict(content.amounts),  # daemons take of it
        metadata.text("uid", "") or None,
    )


def _read_content(spec: JsonEntry, status: JsonEntry, resource: str) -> NodeContent:
    room = status.entry("allocatable" if "allocatable" in status else "capacity")
    counters = {key: quantity(room, key) for key in room.names()}
    stated = frozenset(counters)
    gpus = counters.pop(resource, Fraction(0))
    if gpus.denominator != 1 or gpus > 1024:
        raise room.bad(resource, "a number of GPUs up to 1024")
    amounts = in_units(counters)
    for name, most in (("cpu", MOST_MILLICORES), ("memory", MAX_AMOUNT)):
        if amounts.get(name, 0) > most:
            raise room.bad(name, "no more than a node can have")
    conditions = {entry.text("type"): entry.text("status") for entry in status.entries("conditions")}
    ready = conditions.get("Ready", "True")
    taints = list(filter(None, map(taint, spec.entries("taints"))))
    if cordoned := spec.flag("unschedulable"):
        taints = [one for one in taints if one.key != "node.kubernetes.io/unschedulable"]
    return NodeContent(int(gpus), tuple(dict.fromkeys(taints)), cordoned or ready != "True", stated, amounts)


class NodeList:
    """
    The nodes of a cluster, and the labels that define its domains.

    ``by_name``: The nodes. ``levels``: Label -> name of its level, from the top down; a name that is a label itself, or
    taken, is lengthened. ``stated``: Names of the resources that any node states.

    Arguments: ``levels``: Labels that define domains, top level first; None: those of `LEVELS` and ``named`` that nodes
    have. ``where``: Name of the file, for messages. ``named``: Other labels that objects use as levels, each from the
    top down. ``asked``: Labels that pods name, which no level may be called. Raises `BadInput` if no node has one of
    the ``levels``.
    """

    def __init__(
        self,
        nodes: Mapping[str, NodeCapacity],
        levels: Sequence[str] | None,
        where: str,
        named: Iterable[Sequence[str]] = (),
        asked: Iterable[str] = (),
    ) -> None:
        self.by_name, self._where = nodes, where
        self.stated: frozenset[str] = frozenset().union(*{node.stated for node in nodes.values()})
        self.levels = _levels(nodes.values(), levels, where, named, asked)
        self._level_of: dict[str, str | None] = {}

    def level_of(self, key: str) -> str | None:
        """
        Return the level of the round for a node label; ``node`` if no two nodes share a value.

        None if there is no such level, or if one value occurs in several domains: racks of one name in two zones are
        one domain for an affinity term, and two for the round.
        """
        if key not in self._level_of:
            self._level_of[key] = self._find_level(key)
        return self._level_of[key]

    def _find_level(self, key: str) -> str | None:
        if key not in self.levels:
            values = [node.labels.get(key) for node in self.by_name.values()]
            known = [value for value in values if value is not None]
            unique = len(set(known)) == len(known)
            return "node" if unique and (key == HOSTNAME or len(known) == len(values)) else None
        above = [*self.levels][: [*self.levels].index(key)]
        paths: dict[str, set[tuple[str, ...]]] = defaultdict(set)
        for node in self.by_name.values():
            if node.labels.get(key):
                paths[node.labels[key]].add(tuple(node.labels.get(label, "") for label in above))
        return self.levels[key] if all(len(above_value) == 1 for above_value in paths.values()) else None

    def cluster(self, asked: Container[str], everywhere: Mapping[str, int]) -> Cluster:
        """
        Return the cluster, with one machine type for each shape, without what daemons hold.

        ``asked``: Resources that machine types state; those that no job asks for would only divide nodes into more
        types. ``everywhere``: Amounts that all nodes have beside their own.
        """
        machines: dict[tuple[object, ...], Machine] = {}
        domains: dict[str, Domain] = {}
        records = []
        for node in self.by_name.values():
            amounts = {
                name: min(MAX_AMOUNT, floor(amount))
                for name, amount in node.amounts.items()
                if name in asked or name in ("cpu", "memory")
            }
            cpu, memory = (max(0, amounts.pop(name, 0)) for name in ("cpu", "memory"))
            model = (node.labels.get("nvidia.com/gpu.product") or "gpu") if node.gpus else ""
            gpu_memory = node.labels.get("nvidia.com/gpu.memory", "0")
            taken = tuple(sorted(node.exclusive.items()))
            shape = (model, node.gpus, cpu, memory, gpu_memory if node.gpus else "0", taken, *sorted(amounts.items()))
            if shape not in machines:
                kind = f"{node.gpus}x{model}" if node.gpus else "cpu"
                amounts |= {name: limit - node.exclusive[name] for name, limit in everywhere.items()}
                machines[shape] = make_record(
                    Machine,
                    node.entry.where,
                    id=f"type{len(machines)}-{kind}",
                    cpu_millicores=cpu,
                    memory_mib=memory,
                    gpus=tuple(
                        make_record(Gpu, node.entry.where, model=model, memory_mib=_mib(gpu_memory))
                        for _ in range(node.gpus)
                    ),
                    source="kubernetes",
                    resources={name: amount for name, amount in amounts.items() if amount > 0},
                )
            domain = _domain(node, self.levels, domains)
            records.append(
                make_record(
                    Node,
                    node.entry.where,
                    id=node.name,
                    machine=machines[shape].id,
                    domain=domain,
                    labels=node.labels,
                    taints=node.taints,
                    drained=node.drained,
                    origin=None
                    if node.uid is None
                    else make_record(Origin, node.entry.where, name=node.name, id=node.uid),
                )
            )
        return make_record(
            Cluster,
            self._where,
            machines=tuple(machines.values()),
            domains=tuple(domains.values()),
            nodes=tuple(records),
        )


def _mib(text: str) -> int:
    return int(text) if text.isdecimal() and len(text) < 9 else 0


def _levels(
    nodes: Collection[NodeCapacity],
    levels: Sequence[str] | None,
    where: str,
    named: Iterable[Sequence[str]],
    asked: Iterable[str],
) -> Mapping[str, str]:
    """Return label -> name of its level, from the top down; a name that is a label itself, or taken, is lengthened."""
    carried = {key for node in nodes for key in node.labels}
    taken = {*carried, *asked, *RESERVED_LEVELS}
    for key in levels or ():
        if key not in carried:
            raise BadInput(f"{where}: --levels: no node carries the label {key!r}")
    sources: list[list[str]] = []
    for source in (*LEVELS, *named) if levels is None else (levels,):
        known = {HOSTNAME, *(key for some in sources for key in some)}
        sources.append([key for key in source if key in carried and key not in known])
    level_of: dict[str, str] = {}
    for key in _nested(sources, nodes):
        level = LEVEL_OF.get(key) or key.rpartition("/")[2].removeprefix("topology-")
        while level in taken or level in level_of.values():
            level += "-level"
        level_of[key] = level
    return level_of


def _nested(sources: Sequence[Sequence[str]], nodes: Collection[NodeCapacity]) -> list[str]:
    """Return the labels of some sources, each from the top down, as one order: where values settle it, by values."""
    keys = [(key, source) for source, some in enumerate(sources) for key in some]
    places = {tuple(node.labels.get(key) for key, _ in keys) for node in nodes}
    every = range(len(keys))

    def settles(low: int, high: int) -> bool:
        """Whether each value of one label goes with one value of the other."""
        pairs = {(place[low], place[high]) for place in places if None not in (place[low], place[high])}
        return len({value for value, _ in pairs}) == len(pairs)

    stated = {(i, k) for i in every for k in every if i < k and keys[i][1] in (0, keys[k][1])}
    above = stated | {
        (i, k) for i in every for k in every if (k, i) not in stated and settles(k, i) and not settles(i, k)
    }
    order: list[int] = []
    while len(order) < len(keys):
        rest = [k for k in every if k not in order]
        order.append(next((k for k in rest if not any((i, k) in above for i in rest)), rest[0]))
    return [keys[k][0] for k in order]


def _domain(node: NodeCapacity, named: Mapping[str, str], domains: dict[str, Domain]) -> str | None:
    """Return the lowest domain of a node; domains are called by their path, so racks of two zones may share a name."""
    path: list[str] = []
    parent = None
    for key, level in named.items():
        if node.labels.get(key):
            path.append(node.labels[key])
            name = "/".join(path)
            if name in domains and (domains[name].level, domains[name].parent) != (level, parent):
                name = f"{level}:{name}"
            if name not in domains:
                domains[name] = make_record(Domain, node.entry.where, id=name, level=level, parent=parent)
            parent = name
    return parent
