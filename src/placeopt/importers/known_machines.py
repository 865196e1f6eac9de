"""Machine types of a later reading: the equal one of an earlier one, or a new one."""

from __future__ import annotations

from collections.abc import Collection

from placeopt.model import Cluster, Machine


def with_known_machines(cluster: Cluster, before: Cluster) -> Cluster:
    """Return a cluster whose machine types are those of an earlier state, where equal but for id and source."""
    known = {_content(machine): machine for machine in before.machines}
    taken = {machine.id for machine in before.machines}
    machines: dict[str, Machine] = {}
    for machine in cluster.machines:
        old = known.get(_content(machine))
        machines[machine.id] = old if old is not None else _renamed(machine, taken)
        taken.add(machines[machine.id].id)
    if all(machine.id == name for name, machine in machines.items()):
        nodes = cluster.nodes
    else:
        nodes = tuple(
            node
            if machines[node.machine].id == node.machine
            else node.model_copy(update={"machine": machines[node.machine].id})
            for node in cluster.nodes
        )
    return cluster.model_copy(update={"machines": tuple(machines.values()), "nodes": nodes})


def _content(machine: Machine) -> str:
    return machine.model_dump_json(exclude={"id", "source"})


def _renamed(machine: Machine, taken: Collection[str]) -> Machine:
    """Return a machine type under an id that is not taken."""
    _, dash, kind = machine.id.partition("-")
    number = len(taken)
    while (name := f"type{number}{dash}{kind}") in taken:
        number += 1
    return machine.model_copy(update={"id": name})
