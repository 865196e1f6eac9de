"""Which job holds which GPU, and what is held of each node: the map of a cluster, and the tables behind it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from placeopt.errors import BadInput
from placeopt.model import Cluster, Instance, Machine, Node, Placement
from placeopt.problem.hardware import LOST_MODEL, find_lost
from placeopt.readable import gpus
from placeopt.view import Chart, Column, Table

DRAINED, SEVERAL = "(drained)", "(several jobs)"
"""What stands in place of a job where a GPU is idle and takes none, and where several jobs share it."""
GPU_COLUMNS = (
    Column(name="node"),
    Column(name="GPU"),
    Column(name="domain"),
    Column(name="machine"),
    Column(name="job"),
    Column(name="held", unit="gpu_milli"),
    Column(name="shares"),
)
NODE_COLUMNS = (
    Column(name="node"),
    Column(name="state"),
    Column(name="machine"),
    Column(name="GPUs"),
    Column(name="GPUs held", unit="gpu_milli"),
    Column(name="CPU held", unit="cpu_millicores"),
    Column(name="of CPU", unit="fraction"),
    Column(name="memory held", unit="mib"),
    Column(name="of memory", unit="fraction"),
)
NODES_SHOWN = 24
"""Number of nodes up to which a terminal lists them, too."""


class Share(NamedTuple):
    """A job's share of one GPU, in thousandths."""

    job: str
    milli: int


@dataclass
class NodeUse:
    """Resources held on one node; ``gpus[i]`` lists the shares of GPU ``i``, None of one that is not there."""

    node: Node
    machine: Machine
    gpus: list[list[Share] | None]
    cpu_millicores: int = 0
    memory_mib: int = 0
    jobs: list[str] = field(default_factory=list)

    @property
    def held_milli(self) -> int:
        """GPU-milli held on the node, each GPU counted to 1000 at most."""
        return sum(min(sum(share.milli for share in shares), 1000) for shares in self.gpus if shares)


def node_uses(instance: Instance, placements: Sequence[Placement], source: str) -> list[NodeUse]:
    """
    Return the nodes of an instance in file order, with what the placements hold on them.

    Nodes and GPUs that running jobs hold but the instance does not list follow as drained ones. Raises `BadInput` if a
    placement names a node or GPU that does not exist; ``source`` is the name of the list in the message.
    """
    cluster = find_lost(instance) or instance.cluster
    uses = {use.node.id: use for use in _idle(cluster)}
    for p, placement in enumerate(placements):
        for a, assignment in enumerate(placement.assignments):
            where = f"{source}[{p}].assignments[{a}]"
            use = uses.get(assignment.node)
            if use is None:
                raise BadInput(f"{where}.node: no node {assignment.node!r} in the instance")
            use.jobs.append(placement.job)
            use.cpu_millicores += assignment.cpu_millicores
            use.memory_mib += assignment.memory_mib
            for index, milli in assignment.gpus.items():
                shares = use.gpus[int(index)] if int(index) < len(use.gpus) else None
                if shares is None:
                    raise BadInput(f"{where}.gpus: no GPU {index} on node {assignment.node!r}, it has {len(use.gpus)}")
                shares.append(Share(placement.job, milli))
    for use in uses.values():  # of what is not listed, what is held
        lost = (gpu.model == LOST_MODEL for gpu in use.machine.gpus)
        use.gpus = [None if gone and not shares else shares for gone, shares in zip(lost, use.gpus, strict=True)]
    return list(uses.values())


def _idle(cluster: Cluster) -> list[NodeUse]:
    machines = [(node, cluster.machine_of(node)) for node in cluster.nodes]
    return [NodeUse(node, machine, [[] for _ in machine.gpus]) for node, machine in machines]


def idle_nodes(cluster: Cluster) -> list[NodeUse]:
    """Return the nodes of a cluster on which nothing runs."""
    return _idle(cluster)


def gpu_table(uses: Sequence[NodeUse], note: str = "") -> Table:
    """Return a row for each GPU: who holds it, and how much of it."""
    rows = [
        (
            use.node.id,
            index,
            use.node.domain,
            use.machine.id,
            _holder(shares, use.node),
            sum(share.milli for share in shares),
            ", ".join(f"{share.job} {gpus(share.milli)}" for share in shares),
        )
        for use in uses
        for index, shares in enumerate(use.gpus)
        if shares is not None
    ]
    return Table(name="GPUs", columns=GPU_COLUMNS, rows=tuple(rows), keys=2, note=note, shown=0)


def _holder(shares: Sequence[Share], node: Node) -> str | None:
    if shares:
        return shares[0].job if len(shares) == 1 else SEVERAL
    return DRAINED if node.drained else None


def node_table(uses: Sequence[NodeUse]) -> Table:
    """Return a row for each node: what is held of it."""
    rows = [
        (
            use.node.id,
            "drained" if use.node.drained else "in use" if use.jobs else "empty",
            use.machine.id,
            sum(shares is not None for shares in use.gpus),
            use.held_milli,
            use.cpu_millicores,
            _part(use.cpu_millicores, use.machine.cpu_millicores),
            use.memory_mib,
            _part(use.memory_mib, use.machine.memory_mib),
        )
        for use in uses
    ]
    few = len(rows) <= NODES_SHOWN
    return Table(name="Nodes", columns=NODE_COLUMNS, rows=tuple(rows), shown=NODES_SHOWN if few else 0)


def _part(held: int, there: int) -> float | None:
    return held / there if there else None


def gpu_map(uses: Sequence[NodeUse]) -> Chart:
    """Return how the table of GPUs is drawn: by domain, or by type of machine where there are no domains."""
    group = "domain" if any(use.node.domain for use in uses) else "machine"
    return Chart(kind="map", table="GPUs", x="GPU", y=("held",), lane="node", group=group, label="job")
