"""``ibnetdiscover``: an InfiniBand network; with a host file and ``ibstat`` for the names that a cluster uses."""

import re
from dataclasses import dataclass, field
from itertools import groupby, islice

import networkx as nx
from networkx.utils import UnionFind

from placeopt.errors import BadInput
from placeopt.importers.fabric import Fabric, make_fabric
from placeopt.importers.source_file import SourceFile

MAX_DEVICES = 500_000
MAX_LAYERS = 64
"""Switches farther from any host join nothing; real networks have 2 to 4 layers."""

DEVICE = re.compile(r'(Switch|Ca|Rt)\s+\d{1,4}\s+"([SHR])-([0-9a-fA-F]{1,16})"\s*(?:#\s*"([^"]*)")?')
"""A device of a network begins."""
ADAPTER = re.compile(r"VM_hostname\s+\S+\Z|CA '\w+'\Z")
"""The adapters of a host begin, GUIDs below ``VM_hostname NAME`` or plain ``ibstat``."""
_PORT = re.compile(
    r'\[\d{1,4}\](?:\[\w*\])?(?:\([0-9a-fA-F]+\))?\s+"([SHR])-([0-9a-fA-F]{1,16})"\[\d{1,4}\][^#]*(?:#\s*"([^"]*)")?'
)


def is_hostfile(source: SourceFile) -> bool:
    """Whether every line is one host name."""
    lines = [line for line in source.lines if line and not line.startswith("#")]
    return bool(lines) and all(re.fullmatch(r"[A-Za-z][A-Za-z0-9._-]{1,252}", line) for line in lines)


@dataclass
class _Network:
    """Switches, their neighbours, and the adapters on them; numbers are GUIDs."""

    names: dict[int, str] = field(default_factory=dict)
    switches: "nx.Graph[int]" = field(default_factory=nx.Graph)
    adapters: dict[int, set[int]] = field(default_factory=dict)
    """Adapter -> switches."""


def read_ibnetdiscover(
    network: SourceFile, hostfile: SourceFile | None = None, ibstat: SourceFile | None = None
) -> Fabric:
    """
    Return the network and the domain of each host.

    A node is called by the first word of its adapters' descriptions or, with ``ibstat``, by the host that has the
    adapter's GUID. With ``hostfile`` the nodes are those hosts, and ``unresolved`` lists those that are not found.

    Networks are often no trees (several spines above each leaf). The domains are: the switches that a host's adapters
    hang on (switches that share a host are one domain, but for a wider network, see `_racks`); then, layer by layer
    away from the hosts, what hangs together using only switches up to that layer. In a tree that is the tree; in a fat
    tree it gives leaf, pod, core. This is ours: no standard defines the domains of a network. Raises `BadInput` if no
    host is found, or the text is damaged.
    """
    subnet = _read_network(network)
    hosts = _hosts(subnet, ibstat)
    unresolved = []
    if hostfile is not None:
        wanted = [line for line in hostfile.lines if line and not line.startswith("#")]
        unresolved = [f"{name}: no adapter of that host is in {network.name}" for name in wanted if name not in hosts]
        hosts = {name: hosts[name] for name in wanted if name in hosts}
        if not hosts:
            raise BadInput(
                f"{hostfile.name}: none of its hosts is in {network.name}, whose adapters have other names; "
                "give the hosts' ibstat output too (lines 'VM_hostname NAME', then the GUIDs)"
            )
    if not hosts:
        raise BadInput(f"{network.name}: no host hangs on any switch; expected the output of ibnetdiscover")
    racks = _racks(hosts)
    parents, leaf_of = _domains(subnet, racks)
    return make_fabric(
        network.name, parents, {name: leaf_of[min(leaves)] for name, leaves in racks.items()}, unresolved
    )


def _read_network(source: SourceFile) -> _Network:
    subnet = _Network()
    here: tuple[str, int] | None = None
    for n, line in enumerate(source.lines, 1):
        device = DEVICE.match(line)
        if device:
            here = (device[2], int(device[3], 16))
            subnet.names.setdefault(here[1], device[4] or "")
            subnet.switches.add_nodes_from([here[1]] * (here[0] == "S"))
        elif line.startswith("["):
            port = _PORT.match(line)
            if port is None or here is None:
                raise source.bad(n, f'{line[:60]!r}; expected a port such as [1] "S-0123"[2] under its device')
            there = (port[1], int(port[2], 16))
            if there[0] == "H":
                subnet.names.setdefault(there[1], port[3] or "")
            for (kind, guid), (other_kind, other) in ((here, there), (there, here)):
                if kind == other_kind == "S":
                    subnet.switches.add_edge(guid, other)
                elif kind == "H" and other_kind == "S":
                    subnet.adapters.setdefault(guid, set()).add(other)
        elif not line:
            here = None
        if len(subnet.names) > MAX_DEVICES:
            raise source.bad(n, f"more than {MAX_DEVICES} devices")
    return subnet


def _hosts(subnet: _Network, ibstat: SourceFile | None) -> dict[str, set[int]]:
    """Host name -> switches of its adapters. The aggregation node of a switch is not a host."""
    names = {guid: name for guid, name in subnet.names.items() if guid in subnet.adapters}
    if ibstat is None:
        host_of = {guid: name.split()[0] for guid, name in names.items() if name.split()}
    else:
        host_of = _ibstat_hosts(ibstat)
    hosts: dict[str, set[int]] = {}
    for guid, host in host_of.items():
        if guid in subnet.adapters and "Aggregation Node" not in names.get(guid, ""):
            hosts.setdefault(host, set()).update(filter(subnet.switches.has_node, subnet.adapters[guid]))
    return {host: switches for host, switches in hosts.items() if switches}


def _ibstat_hosts(source: SourceFile) -> dict[int, str]:
    """GUID -> host."""
    hosts: dict[int, str] = {}
    host = None
    for n, line in enumerate(source.lines, 1):
        name = re.match(r"VM_hostname\s+(\S+)\Z", line)
        guid = re.match(r"(?:(?:Node|Port) GUID:\s*)?(?:0x)?([0-9a-fA-F]{12,16})\Z", line)
        if name:
            host = name[1]
        elif guid:
            if host is None:
                raise source.bad(n, "a GUID before any line 'VM_hostname NAME'; expected each host's name first")
            hosts[int(guid[1], 16)] = host
    return hosts


def _racks(hosts: dict[str, set[int]]) -> dict[str, set[int]]:
    """
    Return the hosts with the switches that join them into racks.

    A switch does not where switches of fewer hosts put its hosts into several groups already: it is a wider network,
    such as that of the storage, and the place of only those hosts that have no other switch.
    """
    members: dict[int, list[str]] = {}
    for host, switches in hosts.items():
        for switch in switches:
            members.setdefault(switch, []).append(host)
    by_size = sorted(members, key=lambda switch: len(members[switch]))
    joined, grouped, wide = UnionFind(hosts), set[str](), set[int]()
    for _, equals in groupby(by_size, key=lambda switch: len(members[switch])):
        narrow = []
        for switch in equals:
            if len({joined[host] for host in members[switch] if host in grouped}) > 1:
                wide.add(switch)
            else:
                narrow.append(members[switch])
        for group in narrow:
            joined.union(*group)
            grouped.update(group)
    return {host: switches - wide or switches for host, switches in hosts.items()}


def _domains(subnet: _Network, racks: dict[str, set[int]]) -> tuple[dict[str, str | None], dict[int, str]]:
    """Return domain -> parent, and leaf switch -> domain."""
    layers = list(islice(nx.bfs_layers(subnet.switches, set().union(*racks.values())), MAX_LAYERS))
    joined = UnionFind(layers[0])
    for leaves in racks.values():
        joined.union(*leaves)
    used: set[str] = set()
    rack_of: dict[int, str] = {}
    tops: dict[str, int] = {}  # domain without a parent -> one of its switches
    for leaf in sorted(layers[0]):
        if joined[leaf] not in rack_of:
            rack_of[joined[leaf]] = name = _domain_name(subnet, leaf, used)
            tops[name] = leaf
    leaf_of = {leaf: rack_of[joined[leaf]] for leaf in layers[0]}
    parents: dict[str, str | None] = dict.fromkeys(tops)
    near: set[int] = set()
    for layer in layers:
        near.update(layer)
        for switch in layer:
            joined.union(switch, *near.intersection(subnet.switches[switch]))
        first = {joined[switch]: switch for switch in sorted(layer, reverse=True)}
        groups: dict[int, list[str]] = {}
        for name, switch in tops.items():
            groups.setdefault(joined[switch], []).append(name)
        for root, members in groups.items():
            if len(members) > 1:
                name = _domain_name(subnet, first[root], used)
                parents[name], tops[name] = None, first[root]
                for member in members:
                    parents[member] = name
                    del tops[member]
    return parents, leaf_of


def _domain_name(subnet: _Network, switch: int, used: set[str]) -> str:
    """The switch's description where it is a good and new name, else its GUID; numbered where a layer joins itself."""
    described = subnet.names.get(switch, "")
    name = described if re.fullmatch(r"[^\s\x00-\x1f\x7f]{1,200}", described) else f"S-{switch:016x}"
    count, base = 1, name
    while name in used:
        count += 1
        name = f"{base}.{count}"
    used.add(name)
    return name
