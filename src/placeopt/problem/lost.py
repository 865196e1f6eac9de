"""Nodes and GPUs that jobs run on and the cluster does not list: stand-ins for them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from placeopt.model import Instance, Machine, Node
from placeopt.model.machine import Gpu

LOST_MODEL = "lost"
"""Model of a GPU that is not listed; its type is one of its own, which no job may start on."""


@dataclass(frozen=True)
class Lost:
    """What runs where the cluster lists nothing."""

    machines: tuple[Machine, ...]
    nodes: tuple[Node, ...]
    """
    Those of the cluster, with a drained stand-in for every lost node, and one for every lost GPU, after those of its
    node. A node that is there but lost GPUs has a machine type of its own.
    """
    gpu_index: Mapping[str, Mapping[int, int]]  # id of the node -> index of a lost GPU in the file -> in the stand-in
    listed: Mapping[str, int]  # id of a stand-in's machine type -> number of its GPUs that the cluster lists

    def __bool__(self) -> bool:
        """Whether anything is lost."""
        return bool(self.gpu_index)

    def put_into(self, instance: Instance) -> Instance:
        """Return a round of the same cluster with the stand-ins; the same object if nothing is lost."""
        if not self:
            return instance
        cluster = instance.cluster.model_copy(update={"machines": self.machines, "nodes": self.nodes})
        return instance.model_copy(update={"cluster": cluster})


def find_lost(instance: Instance) -> Lost:
    """
    Return stand-ins for what running jobs hold and the cluster does not list.

    A stand-in has just the GPUs that are held, and no CPU or memory: its limits are broken by what runs there, which is
    exempt (``placeopt.check``), and nothing starts there. Its distance to other GPUs is the default.
    """
    machines = dict(instance.cluster.machine_types)
    nodes = {node.id: node for node in instance.cluster.nodes}
    made: dict[tuple[str | None, int], str] = {}  # machine, lost GPUs -> machine type of the stand-in
    listed: dict[str, int] = {}
    gpu_index: dict[str, dict[int, int]] = {}
    for name, indices in _missing(instance).items():
        machine = machines[nodes[name].machine] if name in nodes else None
        key = (None if machine is None else machine.id, len(indices))
        if key not in made:
            made[key] = _free_name(f"lost-{key[0] or 'node'}-{key[1]}", machines)
            machines[made[key]] = _stand_in(made[key], machine, len(indices))
            listed[made[key]] = 0 if machine is None else len(machine.gpus)
        gpu_index[name] = {index: listed[made[key]] + i for i, index in enumerate(sorted(indices))}
        stand_in = Node(id=name, machine=made[key], drained=True)
        nodes[name] = nodes[name].model_copy(update={"machine": made[key]}) if name in nodes else stand_in
    return Lost(tuple(machines.values()), tuple(nodes.values()), gpu_index, listed)


def _missing(instance: Instance) -> dict[str, set[int]]:
    """Return the GPUs that jobs hold and the cluster does not list, by node; with none for a node without GPUs."""
    listed = instance.cluster.gpus_by_node
    missing: dict[str, set[int]] = {}
    for running in instance.running:
        for assignment in running.assignments:
            size = listed.get(assignment.node, -1)
            lost = [gpu for gpu in map(int, assignment.gpus) if gpu >= size]
            if lost or size < 0:
                missing.setdefault(assignment.node, set()).update(lost)
    return missing


def _stand_in(name: str, machine: Machine | None, lost: int) -> Machine:
    """Return a machine with ``lost`` GPUs after its own."""
    if machine is None:
        return Machine(id=name, cpu_millicores=0, memory_mib=0, gpus=(Gpu(model=LOST_MODEL),) * lost)
    update: dict[str, object] = {"id": name, "gpus": (*machine.gpus, *(Gpu(model=LOST_MODEL),) * lost)}
    if machine.gpu_distance_matrix is not None:
        update["gpu_distance_matrix"] = _extended(machine.gpu_distance_matrix, lost)
    return machine.model_copy(update=update)


def _extended(matrix: tuple[tuple[int, ...], ...], more: int) -> tuple[tuple[int, ...], ...]:
    """Return a distance matrix with more GPUs, each as far from every other as any two of the matrix are."""
    far = max((max(row) for row in matrix), default=0)
    size = len(matrix) + more
    rows = [(*row, *[far] * more) for row in matrix]
    rows += [tuple(0 if i == j else far for j in range(size)) for i in range(len(matrix), size)]
    return tuple(rows)


def _free_name(name: str, taken: Collection[str]) -> str:
    while name in taken:
        name += "-"
    return name
