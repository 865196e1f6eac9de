"""Machine types of a later reading: the equal one of an earlier one, or a new one."""

from itertools import count

from placeopt.model import Cluster, Machine


def with_known_machines(cluster: Cluster, before: Cluster) -> Cluster:
    """Return a cluster whose machine types are those of an earlier state, where equal but for id and source."""
    known = {_content(machine): machine for machine in before.machines}
    taken = {machine.id for machine in before.machines}
    machines: dict[str, Machine] = {}
    for machine in cluster.machines:
        _, dash, kind = machine.id.partition("-")
        names = (f"type{number}{dash}{kind}" for number in count(len(taken)))
        new = machine.model_copy(update={"id": next(name for name in names if name not in taken)})
        machines[machine.id] = known.get(_content(machine), new)
        taken.add(machines[machine.id].id)
    nodes = tuple(
        node if (own := machines[node.machine].id) == node.machine else node.model_copy(update={"machine": own})
        for node in cluster.nodes
    )
    return cluster.model_copy(update={"machines": tuple(machines.values()), "nodes": nodes})


def _content(machine: Machine) -> Machine:
    return machine.model_copy(update={"id": "-", "source": None})
