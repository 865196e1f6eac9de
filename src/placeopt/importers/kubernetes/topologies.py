"""
Levels of the network: labels of nodes whose values are domains.

Known labels of clouds and tools, the Topologies of Kueue and KAI, and the HyperNodes of Volcano.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress

from placeopt.documents.faults import make_record
from placeopt.errors import BadInput
from placeopt.importers.import_notes import ImportNotes
from placeopt.importers.json_entry import JsonEntry
from placeopt.importers.kubernetes.makers import TIER
from placeopt.importers.kubernetes.node_selectors import label_selector
from placeopt.importers.kubernetes.nodes import KubernetesNode
from placeopt.model import Domain
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
MAX_TIERS = 8
"""HyperNodes inside each other."""


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
        if key != HOSTNAME:
            return False
        known = [node.labels[HOSTNAME] for node in self._nodes if HOSTNAME in node.labels]
        return len(set(known)) == len(known)

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
    try:
        members = {one.entry("metadata").text("name"): one.entry("spec") for one in hyper_nodes}
        labels: dict[str, dict[str, str]] = defaultdict(dict)
        for name, spec in members.items():
            tiers = {str(spec.integer("tier", 0, 10**6, 0)), spec.text("tierName", "")} - {""}
            for node in _nodes_of(name, members, nodes, MAX_TIERS):
                labels[node].update({f"{TIER}{tier}": name for tier in tiers})
    except BadInput as error:
        notes.assume(f"HyperNodes are not read: {error}.")
        return
    for node, own in labels.items():
        nodes[node].labels = {**nodes[node].labels, **own}


def _nodes_of(name: str, members: Mapping[str, JsonEntry], nodes: Mapping[str, KubernetesNode], depth: int) -> set[str]:
    """Return the nodes below a HyperNode; ``depth``: of which another may be inside."""
    found: set[str] = set()
    if name not in members or not depth:
        return found
    for member in members[name].entries("members"):
        inner = member.text("type", "Node") == "HyperNode"
        for one in members if inner else nodes:
            if _selected(member.entry("selector"), one, nodes):
                found |= _nodes_of(one, members, nodes, depth - 1) if inner else {one}
    return found


def _selected(selector: JsonEntry, name: str, nodes: Mapping[str, KubernetesNode]) -> bool:
    if "exactMatch" in selector:
        return selector.entry("exactMatch").text("name") == name
    if "regexMatch" in selector:
        return _regular(selector.entry("regexMatch")).search(name) is not None
    meets = label_selector(selector.entry("labelMatch"))
    return name in nodes and meets(nodes[name].labels)


def _regular(entry: JsonEntry) -> re.Pattern[str]:
    """Return an expression; none that could take long to match, which groups and several repetitions can."""
    text = entry.text("pattern")
    with suppress(re.error):
        if "(" not in text and sum(map(text.count, "*+{")) <= 1:
            return re.compile(text)
    raise entry.bad("pattern", "a regular expression without groups, with at most one repetition")
