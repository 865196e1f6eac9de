"""Machine types of single nodes: the equal one of a known cluster, or a new one."""

from __future__ import annotations

from placeopt.model import Cluster, Machine


def known_machine(machine: Machine, cluster: Cluster) -> Machine:
    """Return the machine type of a cluster that differs in id and source at most; else this one under a new id."""
    known = {other.id for other in cluster.machines}
    for other in cluster.machines:
        if machine == other.model_copy(update={"id": machine.id, "source": machine.source}):
            return other
    _, dash, kind = machine.id.partition("-")
    number = len(known)
    while (name := f"type{number}{dash}{kind}") in known:
        number += 1
    return machine.model_copy(update={"id": name})
