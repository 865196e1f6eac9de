"""Levels inside machines (GPU, switch, NUMA domain, socket): the GPUs under a part, and a cluster without them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from placeopt.model import Assignment, Instance, Machine, Running, WorkerGpus
from placeopt.whatif.instance_edit import Patched, edit_instance, with_machines, without_running

INSIDE = ("gpu", "switch", "numa", "socket")
GPU = "gpu"


def gpus_under(instance: Instance, level: str) -> dict[str, tuple[str, tuple[int, ...]]]:
    """
    Return node and GPUs under each part of a level, by ``node/part``; parts without GPUs are left out.

    GPUs themselves are ``node/gpu0``, ``node/gpu1`` and so on.
    """
    of_machine = {machine.id: _parts(machine, level) for machine in instance.cluster.machines}
    return {
        f"{node.id}/{name}": (node.id, gpus)
        for node in instance.cluster.nodes
        for name, gpus in of_machine[node.machine].items()
    }


def _parts(machine: Machine, level: str) -> dict[str, tuple[int, ...]]:
    if level == GPU:
        return {f"gpu{i}": (i,) for i in range(len(machine.gpus))}
    above: dict[str, str] = {}  # part -> its ancestor of that level; parents stand first
    for part in machine.parts:
        if part.level == level:
            above[part.id] = part.id
        elif part.parent in above:
            above[part.id] = above[part.parent]
    found: dict[str, list[int]] = {}
    for i, gpu in enumerate(machine.gpus):
        if gpu.part in above:
            found.setdefault(above[gpu.part], []).append(i)
    return {name: tuple(gpus) for name, gpus in found.items()}


def without_gpus(before: Patched, gone: Mapping[str, Iterable[int]]) -> Patched:
    """
    Return the instance with GPUs taken out of nodes; CPU and memory stay, and so do jobs on the other GPUs.

    Each such node gets a machine type without these GPUs. The remaining GPUs are renumbered from 0, also in the
    placements of running jobs.
    """
    instance = before.instance
    lost = {node: frozenset(gpus) for node, gpus in gone.items()}
    machines = {machine.id: machine for machine in instance.cluster.machines}
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
    displaced = [held.job for held in instance.running if _touches(held, lost)]
    running = tuple(_renumbered(held, new_index) for held in without_running(instance, displaced))
    bare = edit_instance(instance, running=())
    changed = edit_instance(with_machines(bare, machines.values(), nodes), running=running)
    return replace(before, instance=changed, displaced=(*before.displaced, *displaced))


def _touches(held: Running, lost: Mapping[str, frozenset[int]]) -> bool:
    return any(int(gpu) in lost.get(one.node, ()) for one in held.assignments for gpu in one.gpus)


def _renumbered(held: Running, new_index: Mapping[str, Mapping[int, int]]) -> Running:
    if not any(one.node in new_index for one in held.assignments):
        return held
    return held.model_copy(
        update={"assignments": tuple(_moved(one, new_index.get(one.node)) for one in held.assignments)}
    )


def _moved(one: Assignment, numbers: Mapping[int, int] | None) -> Assignment:
    if numbers is None:
        return one
    workers = tuple(WorkerGpus(rank=w.rank, gpus=tuple(numbers[gpu] for gpu in w.gpus)) for w in one.workers)
    shares = {str(numbers[int(gpu)]): milli for gpu, milli in one.gpus.items()}
    return one.model_copy(update={"workers": workers, "gpus": shares})


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
