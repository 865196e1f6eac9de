"""
Kubernetes nodes: what each has, its labels and taints, the levels of the network, and the cluster that they are.

Levels are labels of nodes whose values are domains: known labels of clouds and tools, the Topologies of Kueue and KAI,
and the HyperNodes of Volcano.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from placeopt.documents.faults import make_record
from placeopt.errors import BadInput
from placeopt.importers.import_notes import ImportNotes
from placeopt.importers.json_entry import JsonEntry
from placeopt.importers.kubernetes.makers import TIER
from placeopt.importers.kubernetes.node_conditions import label_selector, taint
from placeopt.importers.kubernetes.objects import unreadable_field
from placeopt.importers.kubernetes.resources import NANO, in_units, may_be_gpu, quantity, unit_of
from placeopt.model import Cluster, Domain, Gpu, Machine, Node, Origin, Profile, Taint
from placeopt.model.base import MAX_AMOUNT, MAX_GPUS
from placeopt.model.cluster import RESERVED_LEVELS

HAMI = re.compile(r"hami\.io/node-[a-z0-9-]*register$")
"""Annotations of a node whose GPUs HAMi shares: its plugin advertises each GPU several times."""
MOST = {"cpu": 100_000_000, "memory": MAX_AMOUNT}
"""Most millicores and MiB of a node."""
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
MAX_TIERS = 8
"""HyperNodes inside each other."""


@dataclass
class KubernetesNode:
    """A node before its machine type is known."""

    entry: JsonEntry
    name: str
    uid: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    drained: bool = False
    gpus: int = 0
    stated: frozenset[str] = frozenset()
    """Names of the resources that it states, also those of which it has none."""
    amounts: dict[str, int] = field(default_factory=dict)
    """What it has for jobs of each resource but GPUs, in nano units: without what daemons hold."""
    profiles: tuple[tuple[Profile, ...], ...] = ()
    """Of the first GPUs, where claims ask for parts of them."""

    def add_devices(self, devices: Mapping[str, int], resource: str) -> None:
        """Add devices that claims take, unless the node states them as a resource of its own."""
        for name, count in devices.items():
            if name == resource:
                self.gpus = self.gpus or count
            elif not self.amounts.get(name):
                self.amounts[name] = NANO * count
        self.stated |= frozenset(devices)

    def take(self, amounts: Mapping[str, int]) -> None:
        """Subtract what no job may have."""
        for name in amounts.keys() & self.amounts.keys():
            self.amounts[name] -= amounts[name]


def read_node(entry: JsonEntry, resource: str, notes: ImportNotes) -> KubernetesNode:
    """Return one node; an unreadable node, or one whose GPUs may be counted twice, is drained and counted."""
    metadata = entry.entry("metadata")
    name = metadata.text("name")
    try:
        spec, status = entry.entry("spec"), entry.entry("status")
        room = status.entry("allocatable" if "allocatable" in status else "capacity")
        amounts = {key: quantity(room, key) for key in room.names()}
        stated, (gpus, part) = frozenset(amounts), divmod(amounts.pop(resource, 0), NANO)
        if part or gpus > MAX_GPUS:
            raise room.bad(resource, f"a number of GPUs up to {MAX_GPUS}")
        for key, most in MOST.items():
            if amounts.get(key, 0) > most * unit_of(key):
                raise room.bad(key, "no more than a node can have")
        ready = {one.text("type"): one.text("status") for one in status.entries("conditions")}.get("Ready", "True")
        taints = dict.fromkeys(filter(None, map(taint, spec.entries("taints"))))
        cordoned = spec.flag("unschedulable")
        if cordoned:
            taints = {one: None for one in taints if one.key != "node.kubernetes.io/unschedulable"}
        uid, labels = metadata.text("uid", "") or None, metadata.texts("labels")
    except BadInput as error:
        notes.drain(f"nodes {unreadable_field(entry, error)}", name)
        return KubernetesNode(entry, name, drained=True)
    drained = cordoned or ready != "True" or "deletionTimestamp" in metadata
    twice = sorted(key for key, amount in amounts.items() if amount and may_be_gpu(key, resource))
    amounts = {key: amount for key, amount in amounts.items() if key not in twice}
    if gpus and twice:
        notes.drain(f"nodes with {resource} and {', '.join(twice)}, which may be the same GPUs", name)
    elif gpus and any(HAMI.match(key) for key in metadata.texts("annotations")):
        notes.drain(f"nodes on which HAMi counts parts of GPUs as {resource}", name)
    return KubernetesNode(entry, name, uid, labels, tuple(taints), drained, gpus, stated, amounts)


class Levels:
    """
    The labels of nodes that define the domains of a cluster.

    ``names``: Label -> name of its level, from the top down; a name that is a label itself, or taken, is lengthened.

    Arguments: ``chosen``: Labels that define domains, top level first; None: those of `LEVELS` and ``named`` that nodes
    have. ``where``: Name of the file, for messages. ``named``: Other labels that objects use as levels, each from the
    top down. ``asked``: Labels that pods name, which no level may be called. Raises `BadInput` if no node has one of
    those ``chosen``.
    """

    def __init__(
        self,
        nodes: Mapping[str, KubernetesNode],
        chosen: Sequence[str] | None,
        where: str,
        named: Iterable[Sequence[str]] = (),
        asked: Iterable[str] = (),
    ) -> None:
        self._nodes = nodes.values()
        carried = {key for node in self._nodes for key in node.labels}
        for key in chosen or ():
            if key not in carried:
                raise BadInput(f"{where}: --levels: no node carries the label {key!r}")
        sources: list[list[str]] = []
        for source in (*LEVELS, *named) if chosen is None else (chosen,):
            known = {HOSTNAME, *(key for some in sources for key in some)}
            sources.append([key for key in source if key in carried and key not in known])
        taken = {*carried, *asked, *RESERVED_LEVELS}
        self.names: dict[str, str] = {}
        for key in _nested(sources, self._nodes):
            level = LEVEL_OF.get(key) or key.rpartition("/")[2].removeprefix("topology-")
            while level in taken or level in self.names.values():
                level += "-level"
            self.names[key] = level

    def is_node(self, key: str) -> bool:
        """
        Return whether each domain of a label of nodes is a node: of a hostname that no two nodes share.

        Of other labels nodes that are added may share a value.
        """
        known = [node.labels[HOSTNAME] for node in self._nodes if HOSTNAME in node.labels]
        return key == HOSTNAME and len(set(known)) == len(known)

    def are_values(self, key: str) -> bool:
        """Return whether the domains of a level are the values of its label, on all nodes; of a hostname, the nodes."""
        if key == HOSTNAME:
            return self.is_node(key) and all(key in node.labels for node in self._nodes)
        if key not in self.names:
            return False
        path = [*self.names][: [*self.names].index(key) + 1]
        places = {tuple(node.labels.get(one) for one in path) for node in self._nodes if key in node.labels}
        values = {place[-1] for place in places if place[-1]}
        return all(node.stated for node in self._nodes) and len(values) == len(places)

    def domain(self, node: KubernetesNode, domains: dict[str, Domain]) -> str | None:
        """
        Return the lowest domain of a node; ``domains``, by name, grow by those that are not there.

        Domains are called by their path, so racks of two zones may share a name.
        """
        path: list[str] = []
        parent = None
        for key, level in self.names.items():
            if node.labels.get(key):
                path.append(node.labels[key])
                name = "/".join(path)
                if name in domains and (domains[name].level, domains[name].parent) != (level, parent):
                    name = f"{level}:{name}"
                if name not in domains:
                    domains[name] = make_record(Domain, node.entry.where, id=name, level=level, parent=parent)
                parent = name
        return parent


def _nested(sources: Sequence[Sequence[str]], nodes: Collection[KubernetesNode]) -> list[str]:
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


def topology_levels(topologies: Iterable[JsonEntry]) -> list[list[str]]:
    """Return the labels of nodes in each Topology, from the top down; of one that cannot be read none."""
    found = []
    for topology in topologies:
        with suppress(BadInput):
            found.append([level.text("nodeLabel") for level in topology.entry("spec").entries("levels")])
    return found


def label_hyper_nodes(
    hyper_nodes: Sequence[JsonEntry], nodes: Mapping[str, KubernetesNode], notes: ImportNotes
) -> None:
    """
    Label each node with the HyperNodes in which it is, by number and name of their tiers.

    None is labelled if a HyperNode cannot be read, so that pods with a rule about tiers are left out.
    """
    labels: dict[str, dict[str, str]] = {node: {} for node in nodes}
    try:
        members = {one.entry("metadata").text("name"): one.entry("spec") for one in hyper_nodes}
        for name, spec in members.items():
            tiers = {str(spec.integer("tier", 0, 10**6, 0)), spec.text("tierName", "")} - {""}
            for node in _nodes_of(name, members, nodes, MAX_TIERS):
                labels[node].update({f"{TIER}{tier}": name for tier in tiers})
    except BadInput as error:
        notes.assume(f"HyperNodes are not read: {error}.")
        return
    for node_name, own in labels.items():
        nodes[node_name].labels = {**nodes[node_name].labels, **own}


def _nodes_of(name: str, members: Mapping[str, JsonEntry], nodes: Mapping[str, KubernetesNode], depth: int) -> set[str]:
    """Return the nodes below a HyperNode; ``depth``: of which another may be inside."""
    found: set[str] = set()
    for member in members[name].entries("members") if name in members and depth else ():
        inner, selector = member.text("type", "Node") == "HyperNode", member.entry("selector")
        if "exactMatch" in selector:
            named = selector.entry("exactMatch").text("name")
            chosen = {named} & (members if inner else nodes).keys()
        elif "regexMatch" in selector:
            pattern = _regular(selector.entry("regexMatch"))
            chosen = {one for one in (members if inner else nodes) if pattern.search(one)}
        else:
            meets = label_selector(selector.entry("labelMatch"))
            chosen = {one for one, node in nodes.items() if meets(node.labels) and (not inner or one in members)}
        found |= chosen if not inner else set().union(*(_nodes_of(one, members, nodes, depth - 1) for one in chosen))
    return found


def _regular(entry: JsonEntry) -> re.Pattern[str]:
    """Return an expression; none that could take long to match, which groups and several repetitions can."""
    text = entry.text("pattern")
    with suppress(re.error):
        if "(" not in text and sum(map(text.count, "*+{")) <= 1:
            return re.compile(text)
    raise entry.bad("pattern", "a regular expression without groups, with at most one repetition")


def cluster_of(nodes: Mapping[str, KubernetesNode], levels: Levels, asked: Collection[str], where: str) -> Cluster:
    """
    Return the cluster, with one machine type for each shape, without what daemons hold.

    ``asked``: Resources that machine types state; those that no job asks for would only divide nodes into more types.
    """
    machines: dict[tuple[object, ...], Machine] = {}
    domains: dict[str, Domain] = {}
    records = []
    asked = {*MOST, *asked}
    for node in nodes.values():
        at = node.entry.where
        left = in_units({key: amount for key, amount in node.amounts.items() if key in asked})
        amounts = {key: max(0, min(MAX_AMOUNT, amount)) for key, amount in left.items()}
        cpu, memory = (amounts.pop(name, 0) for name in MOST)
        model, size = (
            node.labels.get(f"nvidia.com/gpu.{key}", "") if node.gpus else "" for key in ("product", "memory")
        )
        shape = (model, node.gpus, node.profiles, cpu, memory, size, *sorted(amounts.items()))
        if shape not in machines:
            model = model or "gpu"
            of_gpus = (*node.profiles, *((),) * (node.gpus - len(node.profiles)))
            memory_mib = int(size) if size.isdecimal() and len(size) < 9 else 0
            gpu = make_record(Gpu, at, model=model, memory_mib=memory_mib)
            machines[shape] = make_record(
                Machine,
                at,
                id=f"type{len(machines)}-{f'{node.gpus}x{model}' if node.gpus else 'cpu'}",
                cpu_millicores=cpu,
                memory_mib=memory,
                gpus=tuple(gpu.model_copy(update={"profiles": of}) if of else gpu for of in of_gpus),
                source="kubernetes",
                resources={name: amount for name, amount in amounts.items() if amount},
            )
        fields = {
            "id": node.name,
            "machine": machines[shape].id,
            "domain": levels.domain(node, domains),
            "labels": node.labels,
            "taints": node.taints,
            "drained": node.drained,
            "origin": node.uid and make_record(Origin, at, name=node.name, id=node.uid),
        }
        records.append(make_record(Node, at, **fields))
    parts = {"machines": tuple(machines.values()), "domains": tuple(domains.values()), "nodes": tuple(records)}
    return make_record(Cluster, where, **parts)
