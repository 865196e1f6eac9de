"""The cluster: nodes of known machine types under a tree of network domains."""

from collections.abc import Collection, Mapping
from functools import cached_property
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from placeopt.model.base import (
    MAX_LEVELS,
    MAX_NODES,
    Amounts,
    HashedDict,
    Id,
    Labels,
    Mbps,
    PositiveCount,
    PriceMilli,
    Record,
    Resources,
    Weight,
    refuse_repeats,
)
from placeopt.model.conditions import Taint
from placeopt.model.group import Group, Split
from placeopt.model.job import Option, Origin
from placeopt.model.machine import Machine

DEFAULT_PRICE = 1000
"""Of a node, in thousandths an hour, where neither it nor its machine type states another."""


class Domain(Record):
    """A network domain: a rack, a zone, a leaf switch, at any depth; ``level`` is its kind."""

    id: Id
    """Unique name of the domain."""
    level: Id = "rack"
    """Kind of domain, such as rack or zone; at most once on each path."""
    parent: Id | None = None
    """The domain above, or none for the network itself."""
    uplink_weight: Weight | None = None
    """Path weight of the edge to the parent; null: the level's default."""
    uplink_mbps: Mbps | None = None
    """Bandwidth of the uplink in MB/s, one direction; null: unknown, never a limit."""
    resources: Resources = Field(default_factory=Amounts)
    """Named resources that all workers inside take together at most, such as power; what is not named is no limit."""


class Node(Record):
    """One node. Its effective labels are ``labels`` plus, for each domain above it, level -> domain id."""

    id: Id
    """Unique name of the node."""
    machine: Id
    """Machine type of the node."""
    domain: Id | None = None
    """Lowest domain that contains the node; null: the network itself."""
    labels: Labels = Field(default_factory=HashedDict)
    """Labels that jobs choose nodes by."""
    taints: tuple[Taint, ...] = ()
    """A job is kept off unless it tolerates all of them."""
    drained: bool = False
    """Takes no new work; what runs there may stay."""
    price_milli_per_hour: PriceMilli | None = None
    """
    Price of the node, in thousandths of a currency unit an hour, which ``whatif add`` minimises; null: that of its
    machine type.
    """
    origin: Origin | None = None
    """The node in the system that it comes from."""


def node_fault(node: Node, machines: Collection[str], levels: Mapping[str, Collection[str]]) -> str | None:
    """
    Return the first reference of a node to nothing, as ``field: message``; None if there is none.

    ``levels``: Of each domain, by id, its own level and those above it.
    """
    if node.machine not in machines:
        return f"machine: no machine type {node.machine!r}; add it to 'machines'"
    if node.domain is not None:
        if node.domain not in levels:
            return f"domain: no domain {node.domain!r}; add it to 'domains'"
        clash = node.labels.keys() & levels[node.domain]
        if clash:
            return f"labels: {min(clash)!r} is set by the node's domain already; drop the label"
    return None


class BlockSize(Record):
    """A size of gangs that have to lie in one domain of a level: see `Cluster.splits_of`."""

    level: Id
    """Level of domains."""
    nodes: PositiveCount | None = None
    """Nodes that a domain of the level is planned with; null: a gang of any size lies in one."""
    nodes_max: PositiveCount | None = None
    """Nodes of the largest such domain; null: as planned."""


class Cluster(Record):
    """Machine types, domains (parents first) and nodes."""

    document: Annotated[Literal["cluster"], Field(exclude=True)] = "cluster"
    """What a file of it is; inside of another document it is left out."""
    machines: Annotated[tuple[Machine, ...], Field(max_length=MAX_NODES)]
    """Machine types, each described once."""
    domains: Annotated[tuple[Domain, ...], Field(max_length=MAX_NODES)] = ()
    """Network domains, parents before children."""
    nodes: Annotated[tuple[Node, ...], Field(min_length=1, max_length=MAX_NODES)]
    """Nodes, each of one machine type."""
    block_sizes: tuple[BlockSize, ...] = ()
    """Sizes of blocks, smallest first, that gangs may not cross; empty: gangs lie anywhere."""
    resources: Resources = Field(default_factory=Amounts)
    """Named resources that all workers take together at most, such as licences; what is not named is no limit."""

    def splits_of(self, option: Option) -> tuple[Split, ...]:
        """
        Return an option's splits, and those that the sizes of blocks add to a gang.

        A gang that takes n nodes at least lies in one domain of the first level with blocks of n nodes or more, and in
        as few domains as possible, ceil(n / size), of the level below: the rule of Slurm's ``topology/block``. Where
        domains have more nodes than is planned, so that fewer could do, and for trees of groups, the second part is
        left out. An option with a split or spread at one of these levels goes by its own.
        """
        levels = {block.level for block in self.block_sizes}
        alone = not option.groups and option.workers == 1
        stated = {split.level for split in option.splits} | {one.level for one in option.spread}
        if not levels or alone or levels & stated:
            return option.splits
        nodes = sum(map(self._fewest_nodes, option.leaves))
        added: list[Split] = []
        for block in self.block_sizes:
            if block.nodes is None or block.nodes >= nodes:
                added = [*added[-1:], Split(level=block.level, domains=1)]
                break
            domains = -(-nodes // block.nodes)
            exact = option.workers_min is None and not option.groups and (domains - 1) * (block.nodes_max or 0) < nodes
            added = [Split(level=block.level, domains=domains)] if exact else []
        return (*option.splits, *added)

    def _fewest_nodes(self, leaf: Group) -> int:
        """Return the number of nodes that workers state, or else needs on empty nodes of the largest type."""
        for split in leaf.splits:
            if split.level == "node":
                return split.domains
        demand = leaf.demand
        most = 0
        for machine in self.machines:
            amounts = (
                (len(machine.gpus), demand.gpus),
                (machine.cpu_millicores, demand.cpu_millicores),
                (machine.memory_mib, demand.memory_mib),
                (leaf.workers_per_node_max or leaf.workers, 1),
            )
            most = max(most, min(there // needed for there, needed in amounts if needed))
        return -(-leaf.workers // most) if most else leaf.workers

    @cached_property
    def machine_types(self) -> dict[str, Machine]:
        """Machine types by id."""
        return {machine.id: machine for machine in self.machines}

    def machine_of(self, node: Node) -> Machine:
        """Return the machine type of a node."""
        return self.machine_types[node.machine]

    @cached_property
    def gpus_by_node(self) -> dict[str, int]:
        """Number of GPUs of each node."""
        return {node.id: len(self.machine_of(node).gpus) for node in self.nodes}

    @cached_property
    def states_gpu_memory(self) -> bool:
        """Whether all GPUs state how much memory they have; those that do not take no job that asks for some."""
        return all(gpu.memory_mib for machine in self.machines for gpu in machine.gpus)

    @cached_property
    def amounts(self) -> tuple[int, int, int]:
        """Thousandths of GPUs, thousandths of cores and MiB of memory of all nodes."""
        used = [self.machine_of(node) for node in self.nodes]
        return (
            1000 * sum(len(machine.gpus) for machine in used),
            sum(machine.cpu_millicores for machine in used),
            sum(machine.memory_mib for machine in used),
        )

    def price_of(self, node: Node) -> int:
        """Return the price of a node, in thousandths an hour: its own, else that of its machine type, else 1000."""
        for price in (node.price_milli_per_hour, self.machine_of(node).price_milli_per_hour):
            if price is not None:
                return price
        return DEFAULT_PRICE

    def with_prices(self, prices: Mapping[str, int]) -> Self:
        """Return the cluster with prices by machine type, in thousandths an hour, for all nodes of these types."""
        known = {machine.id for machine in self.machines}
        if unknown := sorted(prices.keys() - known):
            raise ValueError(f"no machine type {unknown[0]!r}; known: {', '.join(sorted(known)[:20])}")
        machines = tuple(
            machine.model_copy(update={"price_milli_per_hour": prices[machine.id]}) if machine.id in prices else machine
            for machine in self.machines
        )
        nodes = tuple(
            node.model_copy(update={"price_milli_per_hour": None}) if node.machine in prices else node
            for node in self.nodes
        )
        return self.model_copy(update={"machines": machines, "nodes": nodes})

    @model_validator(mode="after")
    def _references(self) -> Self:
        machines = {machine.id for machine in self.machines}
        refuse_repeats("machines[].id", (machine.id for machine in self.machines), "ids are unique")
        levels: dict[str, frozenset[str]] = {}
        for i, domain in enumerate(self.domains):
            if domain.level in RESERVED_LEVELS:
                raise ValueError(
                    f"domains[{i}].level: {domain.level!r} is a level inside a machine; choose another name"
                )
            if domain.id in levels:
                raise ValueError(f"domains[{i}].id: {domain.id!r} appears twice; ids of domains are unique")
            if domain.parent is not None and domain.parent not in levels:
                raise ValueError(
                    f"domains[{i}].parent: no domain {domain.parent!r} before {domain.id!r}; list parents first"
                )
            above = levels[domain.parent] if domain.parent is not None else frozenset()
            if domain.level in above:
                raise ValueError(
                    f"domains[{i}].level: {domain.level!r} stands above {domain.id!r} already; each level once a path"
                )
            levels[domain.id] = above | {domain.level}
            if len(levels[domain.id]) > MAX_LEVELS:
                raise ValueError(
                    f"domains[{i}].parent: {domain.id!r} is on level {len(levels[domain.id])} of its path; expected at "
                    f"most {MAX_LEVELS} levels"
                )
        known = {level for path in levels.values() for level in path}
        for i, block in enumerate(self.block_sizes):
            if block.level not in known:
                raise ValueError(f"block_sizes[{i}].level: no level {block.level!r} in 'domains'")
            before = self.block_sizes[i - 1].nodes if i else 0
            if before is None or (block.nodes is not None and block.nodes <= before):
                raise ValueError(f"block_sizes[{i}].nodes: {block.nodes} after {before}; list sizes smallest first")
        refuse_repeats("nodes[].id", (node.id for node in self.nodes), "ids are unique")
        for i, node in enumerate(self.nodes):
            fault = node_fault(node, machines, levels)
            if fault is not None:
                raise ValueError(f"nodes[{i}].{fault}")
        return self


RESERVED_LEVELS = frozenset({"gpu", "switch", "numa", "socket", "node", "machine", "cluster", "network"})
