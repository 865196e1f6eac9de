"""The network above the nodes: domains, the domain of each node, and what could not be placed."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

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
        nodes = [Node(id=name, machine=machine.id, domain=domain) for name, domain in self.node_domains.items()]
        return _cluster(self.source, (machine,), self, nodes)


@dataclass(frozen=True)
class Inventory:
    """Nodes and their machine types, without their network, as a resource manager lists them."""

    machines: tuple[Machine, ...]
    nodes: tuple[Node, ...]
    source: str = ""
    unresolved: tuple[str, ...] = field(default=())

    def cluster(self, fabric: Fabric | None = None) -> Cluster:
        """Make the cluster; nodes that the fabric does not name are attached to the network itself."""
        if fabric is None:
            return _cluster(self.source, self.machines, Fabric((), {}), self.nodes)
        nodes = [node.model_copy(update={"domain": fabric.node_domains.get(node.id)}) for node in self.nodes]
        if not any(node.domain for node in nodes):
            raise BadInput(
                f"{self.source}: none of its nodes is in {fabric.source}; files given together must be of one cluster"
            )
        return _cluster(self.source, self.machines, fabric, nodes)


def make_fabric(
    source: str,
    parents: Mapping[str, str | None],
    node_domains: Mapping[str, str],
    unresolved: Sequence[str] = (),
    *,
    rooted: bool = False,
) -> Fabric:
    """
    Make a fabric of domain -> parent (in any order) and node -> domain.

    ``rooted``: A gang lies under one root. Several roots of unlike height get domains above, up to the same level.
    """
    if not node_domains:
        raise BadInput(f"{source}: places no node; expected host names under switches or blocks")
    order = _parents_first(source, parents)
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
        order = _parents_first(source, parents)
    domains = tuple(
        make_record(Domain, source, id=name, level=level_name(height[name]), parent=parents[name]) for name in order
    )
    return Fabric(domains, dict(node_domains), tuple(unresolved), source, block_sizes)


def level_name(height: int) -> str:
    """Return the level of domains of a height, the lowest having 1."""
    return "rack" if height == 1 else f"tier{height}"


def _parents_first(source: str, parents: Mapping[str, str | None]) -> list[str]:
    order: dict[str, None] = {}
    for name in parents:
        way: dict[str, None] = {}
        step: str | None = name
        while step is not None and step not in order:
            if step in way:
                raise BadInput(f"{source}: {step!r} stands above itself; expected a tree")
            way[step] = None
            step = parents[step]
        order.update(dict.fromkeys(reversed(way)))
    return list(order)


def _cluster(source: str, machines: Sequence[Machine], fabric: Fabric, nodes: Sequence[Node]) -> Cluster:
    return make_record(
        Cluster,
        source,
        machines=tuple(machines),
        domains=fabric.domains,
        nodes=tuple(nodes),
        block_sizes=fabric.block_sizes,
    )
