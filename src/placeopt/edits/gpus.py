"""GPUs taken out of nodes."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from placeopt.edits.records import changed
from placeopt.model import Instance, Machine, Running, WorkerGpus


def without_gpus(instance: Instance, gone: Mapping[str, Iterable[int]]) -> Instance:
    """
    Return the round with GPUs taken out of nodes; CPU and memory stay, and so do jobs on the other GPUs.

    Each such node gets a machine type without these GPUs. The remaining GPUs are renumbered from 0, also in the
    placements of running jobs.
    """
    lost = {node: frozenset(gpus) for node, gpus in gone.items()}
    machines = dict(instance.cluster.machine_types)
    made: dict[tuple[str, frozenset[int]], Machine] = {}
    nodes = []
    for node in instance.cluster.nodes:
        gpus = lost.get(node.id)
        if gpus:
            kind = (node.machine, gpus)
            if kind not in made:
                made[kind] = _less(machines[node.machine], gpus, machines)
                machines[made[kind].id] = made[kind]
            nodes.append(node.model_copy(update={"machine": made[kind].id}))
        else:
            nodes.append(node)
    sizes = {node.id: len(machines[node.machine].gpus) for node in instance.cluster.nodes}
    new_index = {
        name: {gpu: i for i, gpu in enumerate(g for g in range(sizes[name]) if g not in gpus)}
        for name, gpus in lost.items()
    }
    running = tuple(
        _renumbered(held, new_index)
        for held in instance.running
        if not any(int(gpu) in lost.get(part.node, ()) for part in held.assignments for gpu in part.gpus)
    )
    cluster = changed(instance.cluster, machines=tuple(machines.values()), nodes=tuple(nodes))
    return changed(instance, cluster=cluster, running=running)


def _renumbered(held: Running, new_index: Mapping[str, Mapping[int, int]]) -> Running:
    assignments = []
    for assignment in held.assignments:
        number = new_index.get(assignment.node)
        if number is not None:
            workers = tuple(
                WorkerGpus(rank=w.rank, gpus=tuple(number[gpu] for gpu in w.gpus)) for w in assignment.workers
            )
            shares = {str(number[int(gpu)]): milli for gpu, milli in assignment.gpus.items()}
            assignment = assignment.model_copy(update={"workers": workers, "gpus": shares})
        assignments.append(assignment)
    return held.model_copy(update={"assignments": tuple(assignments)})


def _less(machine: Machine, gone: frozenset[int], taken: Mapping[str, Machine]) -> Machine:
    """Return the machine type without some GPUs, under a name that is free."""
    stay = [i for i in range(len(machine.gpus)) if i not in gone]
    number = {gpu: i for i, gpu in enumerate(stay)}
    fields: dict[str, Any] = {
        "gpus": tuple(machine.gpus[i] for i in stay),
        "links": tuple(
            link.model_copy(update={"gpus": (number[link.gpus[0]], number[link.gpus[1]])})
            for link in machine.links
            if not gone & set(link.gpus)
        ),
    }
    if machine.gpu_distance_matrix is not None:
        fields["gpu_distance_matrix"] = tuple(tuple(machine.gpu_distance_matrix[a][b] for b in stay) for a in stay)
    words = "-".join(map(str, sorted(gone)))
    name = f"{machine.id}-less-{words}"
    while name in taken or len(name) > 253:
        name = f"less-{hashlib.sha256(name.encode()).hexdigest()[:16]}"
    return Machine(**{**dict(machine), **fields, "id": name})
