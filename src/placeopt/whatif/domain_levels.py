"""Levels of a cluster by name, and the nodes under each of their domains."""

from __future__ import annotations

from collections.abc import Iterable

from placeopt.errors import BadArgument
from placeopt.model import Instance

NODE = "node"


def levels_of(instance: Instance) -> tuple[str, ...]:
    """Return ``node`` and the levels of the network's domains, in the order in which they are listed."""
    return (NODE, *dict.fromkeys(domain.level for domain in instance.cluster.domains))


def nodes_under(instance: Instance, level: str, also: tuple[str, ...] = ()) -> dict[str, tuple[str, ...]]:
    """
    Return the nodes under each domain of a level, at any depth; domains without nodes are left out.

    Raises
    ------
    BadInput
        If the cluster has no such level; names its levels, and those in ``also``, which the caller accepts too.
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
    found: dict[str, list[str]] = {}
    for node in nodes:
        if node.domain in of_level:
            found.setdefault(of_level[node.domain], []).append(node.id)
    return {name: tuple(under) for name, under in found.items()}


def free_prefix(names: Iterable[str]) -> str:
    """Return ``added``, or that with primes, so that no node's name begins with it."""
    used = {name.rpartition("-")[0] for name in names}
    prefix = "added"
    while prefix in used:
        prefix += "'"
    return prefix
