"""The network above the nodes: domains, the domain of each node, and what could not be placed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from placeopt.documents.faults import make_record
from placeopt.errors import BadInput
from placeopt.model import BlockSize, Cluster, Domain, Machine, Node


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

    def cluster(self, machine: Machine) -> Cluster:
        """Make the cluster whose nodes are all of one machine type."""
        nodes = tuple(Node(id=name, machine=machine.id, domain=domain) for name, domain in self.node_domains.items())
        return Inventory((machine,), nodes, self.source).cluster(self)


@dataclass(frozen=True)
class Inventory:
    """Nodes and their machine types, without their network, as a resource manager lists them."""

    machines: tuple[Machine, ...]
    nodes: tuple[Node, ...]
    source: str = ""

    def cluster(self, fabric: Fabric | None = None) -> Cluster:
        """Make the cluster; nodes that the fabric does not name are attached to the network itself."""
        nodes, network = self.nodes, fabric or Fabric((), {})
        if fabric is not None:
            nodes = tuple(node.model_copy(update={"domain": fabric.node_domains.get(node.id)}) for node in nodes)
            if not any(node.domain for node in nodes):
                both = f"{self.source}: none of its nodes is in {fabric.source}"
                raise BadInput(f"{both}; files given together must be of one cluster")
        fields = {"domains": network.domains, "nodes": nodes, "block_sizes": network.block_sizes}
        return make_record(Cluster, self.source, machines=self.machines, **fields)


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
    order = _parents_first(parents)
    height = dict.fromkeys(order, 1)
    for name in reversed(order):
        parent = parents[name]
        if parent is not None:
            height[parent] = max(height[parent], height[name] + 1)
    roots = [name for name in order if parents[name] is None]
    block_sizes: tuple[BlockSize, ...] = ()
    if rooted and len(roots) > 1:
        top, above = max(height.values()), dict(parents)
        for root in roots:
            for level in range(height[root] + 1, top + 1):
                name = f"{root}.tier{level}"
                above[root], above[name], height[name], root = name, None, level, name
        parents, block_sizes = above, (BlockSize(level=level_name(top)),)
        order = _parents_first(parents)
    domains = tuple(
        make_record(Domain, source, id=name, level=level_name(height[name]), parent=parents[name]) for name in order
    )
    return Fabric(domains, dict(node_domains), tuple(unresolved), source, block_sizes)


def level_name(height: int) -> str:
    """Return the level of domains of a height, the lowest having 1."""
    return "rack" if height == 1 else f"tier{height}"


def _parents_first(parents: Mapping[str, str | None]) -> list[str]:
    order: dict[str, None] = {}
    for name in parents:
        way: list[str] = []
        step: str | None = name
        while step is not None and step not in order:
            way.append(step)
            step = parents[step]
        order |= dict.fromkeys(reversed(way))
    return list(order)
