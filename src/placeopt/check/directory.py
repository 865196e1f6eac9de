"""What an instance says, by name: jobs, nodes, machines, domains and what runs."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

from placeopt.model import Assignment, Group, Hold, Instance, Job, Machine, Node, Option, Placement, Running
from placeopt.model.conditions import NodeConditions


class PlacedJob(NamedTuple):
    """
    The alike workers of a placement whose job and option exist: all of it, or of an option with groups those of a leaf.

    ``option`` is what they ask for: the option, or the leaf. ``asked`` is what their job, and each group that they are
    in, asks of nodes.
    """

    job: Job
    option: Group
    placement: Placement
    asked: tuple[NodeConditions, ...]


class Directory:
    """
    What an instance says, by name.

    Attributes
    ----------
    jobs, nodes, machine_of, running
        By id: of the job, the node, the node, the job.
    uplinks, domains_above
        By id of the domain: its uplink's capacity, and level -> domain for itself and all above it.
    domain_resources, cluster_resources
        What all workers in a domain, by its id, and in the cluster may take of named resources.
    holds
        By id of the node: the holds there.
    """

    def __init__(self, instance: Instance) -> None:
        self.machines: dict[str, Machine] = {machine.id: machine for machine in instance.cluster.machines}
        self.jobs: dict[str, Job] = {job.id: job for job in instance.jobs}
        nodes = instance.cluster.nodes
        self.nodes: dict[str, Node] = {node.id: node for node in nodes}
        self.machine_of: dict[str, Machine] = {node.id: self.machines[node.machine] for node in nodes}
        self.now_ms = instance.now_ms
        self.running: dict[str, Running] = {running.job: running for running in instance.running}
        self.related = {name for name in self.running if name in self.jobs and self.jobs[name].relations}
        """Running jobs that have relations to others."""
        self.splits_of = instance.cluster.splits_of
        self.uplinks: dict[str, int | None] = {domain.id: domain.uplink_mbps for domain in instance.cluster.domains}
        self.domain_resources = {domain.id: domain.resources for domain in instance.cluster.domains if domain.resources}
        self.cluster_resources = instance.cluster.resources
        beyond = {*self.cluster_resources, *(name for of in self.domain_resources.values() for name in of)}
        self.named = {name for machine in self.machines.values() for name in machine.resources}
        """Named resources that nodes state; those that only domains or the cluster state are no limit of a node."""
        self.named_beyond = beyond
        self.holds = by_nodes(instance.holds_now)
        self.domains_above = _domains_above(instance)

    @cached_property
    def total(self) -> tuple[int, int, int]:
        """GPU-milli, millicores and MiB of all nodes together."""
        counts = [(self.machines[name], n) for name, n in Counter(node.machine for node in self.nodes.values()).items()]
        return (
            sum(1000 * len(machine.gpus) * n for machine, n in counts),
            sum(machine.cpu_millicores * n for machine, n in counts),
            sum(machine.memory_mib * n for machine, n in counts),
        )

    @cached_property
    def some_marked(self) -> bool:
        """Whether any node is tainted or drained."""
        return any(node.taints or node.drained for node in self.nodes.values())

    def put_node(self, node: Node) -> None:
        """Put a node in the place of the one of the same id, or else last."""
        self.nodes[node.id] = node
        self.machine_of[node.id] = self.machines[node.machine]
        self._forget_sums()

    def remove_node(self, name: str) -> None:
        """Take a node away."""
        del self.nodes[name], self.machine_of[name]
        self._forget_sums()

    def _forget_sums(self) -> None:
        for name in ("total", "some_marked"):
            self.__dict__.pop(name, None)

    def width(self, node: str, gpu: str, profile: str | None) -> int:
        """Return how many slots a profile takes of a GPU; 0 where there is no such GPU, or it has no such profile."""
        machine, number = self.machine_of.get(node), gpu_number(gpu)
        there = machine.gpus[number].profiles if machine is not None and 0 <= number < len(machine.gpus) else ()
        return next((one.width for one in there if one.id == profile), 0)

    def domains_of(self, node: str) -> dict[str, str]:
        """Return level -> domain id for every domain above a known node."""
        domain = self.nodes[node].domain
        return {} if domain is None else self.domains_above[domain]

    def labels_of(self, node: Node) -> dict[str, str]:
        """Return the labels of a node: those of its domains, by level, its own, and its name."""
        return {**self.domains_of(node.id), **node.labels, "metadata.name": node.id}

    def domain_at(self, node: str, level: str) -> str | None:
        """Return the domain of a level that holds a node, of level ``node`` itself; None: none, or no such node."""
        if level == "node":
            return node
        return self.domains_of(node).get(level) if node in self.nodes else None


def by_nodes(holds: Iterable[Hold]) -> dict[str, list[Hold]]:
    """Return the holds on each node."""
    there: dict[str, list[Hold]] = {}
    for hold in holds:
        there.setdefault(hold.node, []).append(hold)
    return there


def option_of(job: Job, option: str) -> Option | None:
    """Return the job's option of that id, or None."""
    for candidate in job.options:
        if candidate.id == option:
            return candidate
    return None


def leaves_of(job: Job, option: Option, placement: Placement) -> list[PlacedJob]:
    """Return the alike workers of a placement, leaf by leaf; those without workers, or of no leaf, are left out."""
    if not option.groups:
        return [PlacedJob(job, option, placement, (job.conditions, option.conditions))]
    of_leaf: dict[str | None, list[Assignment]] = {}
    for assignment in placement.assignments:
        of_leaf.setdefault(assignment.group, []).append(assignment)
    return [
        PlacedJob(job, leaf, placement.model_copy(update={"assignments": tuple(of_leaf[leaf.id])}), asked)
        for leaf, asked in _leaves(option, (job.conditions,))
        if leaf.id in of_leaf
    ]


def _leaves(group: Group, above: tuple[NodeConditions, ...]) -> Iterator[tuple[Group, tuple[NodeConditions, ...]]]:
    """Yield each leaf, and what is asked of nodes from ``above`` down to it."""
    asked = (*above, group.conditions)
    if not group.groups:
        yield group, asked
    for part in group.groups:
        yield from _leaves(part, asked)


def workers_by_node(placement: Placement, leaves: Collection[str] | None = None) -> Counter[str]:
    """Return how many workers are on each node; ``leaves``: of an option with groups those of these leaves."""
    found: Counter[str] = Counter()
    for assignment in placement.assignments:
        if leaves is None or assignment.group is None or assignment.group in leaves:
            found[assignment.node] += len(assignment.workers)
    return found


def gpu_number(key: str) -> int:
    """Return the GPU index of a key of an assignment's ``gpus``; -1 where it is not a number."""
    try:
        return int(key)
    except ValueError:
        return -1


def _domains_above(instance: Instance) -> dict[str, dict[str, str]]:
    above: dict[str, dict[str, str]] = {}
    for domain in instance.cluster.domains:
        above[domain.id] = {**(above[domain.parent] if domain.parent is not None else {}), domain.level: domain.id}
    return above
