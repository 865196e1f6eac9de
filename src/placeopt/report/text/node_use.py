"""Holders of every GPU, node by node: of running or planned placements."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from placeopt.errors import BadInput
from placeopt.problem.running import find_lost

if TYPE_CHECKING:
    from placeopt.model import Instance, Machine, Node, Placement


class GpuHolder(NamedTuple):
    """A job's share of one GPU, in thousandths."""

    job: str
    milli: int


@dataclass
class NodeUse:
    """Resources held on one node; ``gpus[i]`` lists the holders of GPU ``i``."""

    node: Node
    machine: Machine
    gpus: list[list[GpuHolder]]
    cpu_millicores: int = 0
    memory_mib: int = 0
    jobs: list[str] = field(default_factory=list)

    @property
    def milli(self) -> list[int]:
        """Thousandths held of each GPU; above 1000 where the policy overcommits."""
        return [sum(held.milli for held in gpu) for gpu in self.gpus]

    @property
    def used_milli(self) -> int:
        """GPU-milli held on the node, each GPU counted to 1000 at most."""
        return sum(min(milli, 1000) for milli in self.milli)

    @property
    def is_idle(self) -> bool:
        """Whether no job holds anything here."""
        return not self.jobs


def node_uses(instance: Instance, placements: Sequence[Placement], source: str = "placements") -> list[NodeUse]:
    """
    Return the nodes of an instance in file order, with what the placements hold on them.

    Nodes and GPUs that running jobs hold but the instance does not list follow as drained ones.

    Raises
    ------
    BadInput
        If a placement names a node or GPU that does not exist; ``source`` is the name of the list in the message.
    """
    lost = find_lost(instance)
    cluster = instance.cluster if lost is None else lost.instance.cluster
    machines = {machine.id: machine for machine in cluster.machines}
    uses = {}
    for node in cluster.nodes:
        machine = machines[node.machine]
        uses[node.id] = NodeUse(node, machine, [[] for _ in machine.gpus])
    for p, placement in enumerate(placements):
        for a, assignment in enumerate(placement.assignments):
            where = f"{source}[{p}].assignments[{a}]"
            use = uses.get(assignment.node)
            if use is None:
                raise BadInput(f"{where}.node: no node {assignment.node!r} in the instance")
            use.jobs.append(placement.job)
            use.cpu_millicores += assignment.cpu_millicores
            use.memory_mib += assignment.memory_mib
            moved_to = {} if lost is None else lost.gpu_index.get(assignment.node, {})
            for index, milli in assignment.gpus.items():
                at = moved_to.get(int(index), int(index))
                if at >= len(use.gpus):
                    raise BadInput(f"{where}.gpus: no GPU {index} on node {assignment.node!r}, it has {len(use.gpus)}")
                use.gpus[at].append(GpuHolder(placement.job, milli))
    return list(uses.values())
