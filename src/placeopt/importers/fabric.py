"""The network above the nodes: domains, the domain of each node, and what could not be placed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import Literal

from placeopt.documents.faults import make_record
from placeopt.errors import BadInput
from placeopt.model import BlockSize, Cluster, Domain, Machine, Node, Record


class Network(Record):
    """A network in a file of its own; its lists can be pasted into the cluster of a round."""

    document: Literal["network"] = "network"
    """What the file is."""
    domains: tuple[Domain, ...]
    """Parents first."""
    node_domains: Mapping[str, str]
    """Node -> domain, in the file's order."""


@dataclass(frozen=True)
class Fabric:
    """
    A network as a tree of domains.

    The lowest domains have level ``rack``, those above ``tier2``, ``tier3`` and so on: a name by height, because the
    formats name switches and blocks, not levels.
    """

    domains: tuple[Domain, ...]
    """Parents first."""
    node_domains: Mapping[str, str]
    """Node -> domain, in the file's order."""
    unresolved: tuple[str, ...] = ()
    """What was not found, or not read, one sentence each."""
    source: str = ""
    block_sizes: tuple[BlockSize, ...] = ()
    """Sizes of gangs that lie in one domain."""

    @property
    def network(self) -> Network:
        """What a file of it has."""
        return Network(domains=self.domains, node_domains=dict(self.node_domains))

    def of_machine(self, machine: Machine) -> Cluster:
        """Make the cluster whose nodes are all of one machine type."""
        nodes = tuple(Node(id=name, machine=machine.id, domain=domain) for name, domain in self.node_domains.items())
        return self._cluster((machine,), nodes)

    def with_nodes(self, cluster: Cluster) -> Cluster:
        """Return a cluster of nodes in this network; nodes that it does not name are attached to the network itself."""
        if not any(node.id in self.node_domains for node in cluster.nodes):
            raise BadInput(f"{self.source}: has none of the nodes; files given together must be of one cluster")
        found = (node.model_copy(update={"domain": self.node_domains.get(node.id)}) for node in cluster.nodes)
        return self._cluster(cluster.machines, tuple(found))

    def _cluster(self, machines: tuple[Machine, ...], nodes: tuple[Node, ...]) -> Cluster:
        parts = {"domains": self.domains, "block_sizes": self.block_sizes}
        return make_record(Cluster, self.source, machines=machines, nodes=nodes, **parts)


def make_fabric(
    source: str,
    parents: Mapping[str, str | None],
    node_domains: Mapping[str, str],
    unresolved: Sequence[str] = (),
    *,
    rooted: bool = False,
) -> Fabric:
    """
    Make a fabric of domain -> parent (a forest, in any order) and node -> domain.

    ``rooted``: A gang lies under one root. Several roots of unlike height get domains above, up to the same level.
    """
    if not node_domains:
        raise BadInput(f"{source}: places no node; expected host names under switches or blocks")
    height = dict.fromkeys(parents, 1)
    for name in reversed(_parents_first(parents)):
        if (parent := parents[name]) is not None:
            height[parent] = max(height[parent], height[name] + 1)
    roots = [name for name, parent in parents.items() if parent is None]
    block_sizes: tuple[BlockSize, ...] = ()
    if rooted and len(roots) > 1:
        top, parents = max(height.values()), dict(parents)
        for root in roots:
            for level in range(height[root] + 1, top + 1):
                name = f"{root}.tier{level}"
                parents[root], parents[name], height[name], root = name, None, level, name
        block_sizes = (BlockSize(level=level_name(top)),)
    domains = tuple(
        make_record(Domain, source, id=name, level=level_name(height[name]), parent=parents[name])
        for name in _parents_first(parents)
    )
    return Fabric(domains, dict(node_domains), tuple(unresolved), source, block_sizes)


def level_name(height: int) -> str:
    """Return the level of domains of a height, the lowest having 1."""
    return "rack" if height == 1 else f"tier{height}"


def _parents_first(parents: Mapping[str, str | None]) -> list[str]:
    above = {name: [] if parent is None else [parent] for name, parent in parents.items()}
    return list(TopologicalSorter(above).static_order())
