"""Levels by name, of the network and inside machines, and the nodes or GPUs under each of their parts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from placeopt.errors import BadArgument
from placeopt.model import Instance, Machine

NODE = "node"


INSIDE = ("gpu", "switch", "numa", "socket")
GPU = "gpu"


def levels_of(instance: Instance) -> tuple[str, ...]:
    """Return ``node`` and the levels of the network's domains, in the order in which they are listed."""
    return (NODE, *dict.fromkeys(domain.level for domain in instance.cluster.domains))


def nodes_under(instance: Instance, level: str, also: tuple[str, ...] = ()) -> dict[str, tuple[str, ...]]:
    """
    Return the nodes under each domain of a level, at any depth; domains without nodes are left out.

    `BadInput` for an unknown level names the cluster's levels, and those in ``also``, which the caller accepts too.
    """
    nodes = instance.cluster.nodes
    if level == NODE:
        return {node.id: (node.id,) for node in nodes}
    if level not in levels_of(instance):
        there = ", ".join((*levels_of(instance), *also))
        raise BadArgument(f"level: no level {level!r} in the cluster; there are: {there}")
    of_level: dict[str, str] = {}  # domain -> its ancestor of that level; parents stand first
    for domain in instance.cluster.domains:
        if domain.level == level:
            of_level[domain.id] = domain.id
        elif domain.parent in of_level:
            of_level[domain.id] = of_level[domain.parent]
    by_domain: dict[str, list[str]] = {}
    for node in nodes:
        if node.domain in of_level:
            by_domain.setdefault(of_level[node.domain], []).append(node.id)
    return {name: tuple(under) for name, under in by_domain.items()}


@dataclass(frozen=True)
class LostHardware:
    """The hardware that fails with a domain: whole nodes, or GPUs of nodes that stay."""

    nodes: tuple[str, ...] = ()
    gpus: Mapping[str, tuple[int, ...]] = field(default_factory=dict)


def lost_hardware(instance: Instance, level: str, names: Iterable[str] | None = None) -> dict[str, LostHardware]:
    """
    Return the hardware that fails with each domain of a level, or at least with those that are named.

    Parts of a level inside machines have names such as ``node-7/sw0``, GPUs ``node-7/gpu0``, ``node-7/gpu1`` and so on;
    failed GPUs, and parts without any other, are left out. Raises `BadInput` where there is no such level.
    """
    if level not in INSIDE:
        return {name: LostHardware(nodes) for name, nodes in nodes_under(instance, level, also=INSIDE).items()}
    of_machine = {machine.id: _parts(machine, level) for machine in instance.cluster.machines}
    ids = None if names is None else {name[:i] for name in names for i, letter in enumerate(name) if letter == "/"}
    failed = instance.failed_gpus
    return {
        f"{node.id}/{name}": LostHardware(gpus={node.id: left})
        for node in instance.cluster.nodes
        if ids is None or node.id in ids
        for name, gpus in of_machine[node.machine].items()
        if (left := tuple(gpu for gpu in gpus if (node.id, gpu) not in failed) if failed else gpus)
    }


def joined(losses: Iterable[LostHardware]) -> LostHardware:
    """Return the hardware of several domains that fail together."""
    nodes: list[str] = []
    gpus: dict[str, tuple[int, ...]] = {}
    for loss in losses:
        nodes += loss.nodes
        for node, more in loss.gpus.items():
            gpus[node] = tuple(dict.fromkeys((*gpus.get(node, ()), *more)))
    return LostHardware(tuple(nodes), gpus)


def _parts(machine: Machine, level: str) -> dict[str, tuple[int, ...]]:
    if level == GPU:
        return {f"gpu{i}": (i,) for i in range(len(machine.gpus))}
    above: dict[str, str] = {}  # part -> its ancestor of that level; parents stand first
    for part in machine.parts:
        if part.level == level:
            above[part.id] = part.id
        elif part.parent in above:
            above[part.id] = above[part.parent]
    by_part: dict[str, list[int]] = {}
    for i, gpu in enumerate(machine.gpus):
        if gpu.part in above:
            by_part.setdefault(above[gpu.part], []).append(i)
    return {name: tuple(gpus) for name, gpus in by_part.items()}
