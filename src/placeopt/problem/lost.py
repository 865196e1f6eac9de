"""Nodes and GPUs that jobs run on and the cluster does not list: stand-ins for them."""

from __future__ import annotations

from collections.abc import Collection

from placeopt.model import Cluster, Gpu, Instance, Machine, Node

LOST_MODEL = ""
"""Model of a GPU that is not listed, which is no name in a file; no job may start on one."""


def find_lost(instance: Instance) -> Cluster | None:
    """
    Return the cluster with stand-ins for what running jobs hold and it does not list; None if it lists everything.

    A lost node is a drained one, a node that lost GPUs has a machine type of its own. A stand-in has GPUs up to the
    highest index that is held, and of a lost node no CPU or memory: its limits are broken by what runs there, which is
    exempt (``placeopt.check``), and nothing starts there. Its distance to other GPUs is the default.
    """
    machines = dict(instance.cluster.machine_types)
    nodes = {node.id: node for node in instance.cluster.nodes}
    made: dict[tuple[str | None, int], str] = {}  # machine, GPUs -> machine type of the stand-in
    for name, gpus in _sizes(instance).items():
        machine = machines[nodes[name].machine] if name in nodes else None
        key = (None if machine is None else machine.id, gpus)
        if key not in made:
            made[key] = _free_name(f"lost-{key[0] or 'node'}-{gpus}", machines)
            machines[made[key]] = _stand_in(made[key], machine, gpus)
        stand_in = Node(id=name, machine=made[key], drained=True)
        nodes[name] = nodes[name].model_copy(update={"machine": made[key]}) if name in nodes else stand_in
    if not made:
        return None
    return instance.cluster.model_copy(update={"machines": tuple(machines.values()), "nodes": tuple(nodes.values())})


def with_lost(instance: Instance, lost: Cluster | None) -> Instance:
    """Return a round of a cluster with the stand-ins that `find_lost` found for it."""
    if lost is None:
        return instance
    cluster = instance.cluster.model_copy(update={"machines": lost.machines, "nodes": lost.nodes})
    return instance.model_copy(update={"cluster": cluster})


def _sizes(instance: Instance) -> dict[str, int]:
    """Return the number of GPUs that a stand-in has for each node of which jobs hold more than the cluster lists."""
    listed, sizes = instance.cluster.gpus_by_node, dict[str, int]()
    for running in instance.running:
        for assignment in running.assignments:
            held = max(map(int, assignment.gpus), default=-1) + 1
            if held > listed.get(assignment.node, -1):
                sizes[assignment.node] = max(sizes.get(assignment.node, 0), held)
    return sizes


def _stand_in(name: str, machine: Machine | None, gpus: int) -> Machine:
    """Return a machine with so many GPUs: lost ones after its own."""
    if machine is None:
        machine = Machine(id=name, cpu_millicores=0, memory_mib=0)
    lost = (Gpu.model_construct(model=LOST_MODEL),) * (gpus - len(machine.gpus))
    update: dict[str, object] = {"id": name, "gpus": (*machine.gpus, *lost)}
    if machine.gpu_distance_matrix is not None:  # a lost GPU is as far from every other as any two are
        far, known = max(map(max, machine.gpu_distance_matrix), default=0), len(machine.gpus)
        rows = [(*row, *[far] * len(lost)) for row in machine.gpu_distance_matrix]
        rows += [tuple(far * (i != j) for j in range(gpus)) for i in range(known, gpus)]
        update["gpu_distance_matrix"] = tuple(rows)
    return machine.model_copy(update=update)


def _free_name(name: str, taken: Collection[str]) -> str:
    while name in taken:
        name += "-"
    return name
