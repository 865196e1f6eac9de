"""
What pods exclude each other from on one node, as amounts of the node: host ports, and anti-affinity by hostname.

A node has 1 of each address of a port; a pod takes that of its address, or all of them. Of a term of anti-affinity a
node has n: a pod that excludes all others takes n, one that only some exclude takes 1. Other anti-affinity is a
relation between jobs, and this could be one, but amounts are seen by all relaxations and capacity questions.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256

from placeopt.importers.kubernetes.listing import PodList
from placeopt.importers.kubernetes.objects import job_id
from placeopt.importers.kubernetes.pod_affinity import NAMESPACE, NO_RELATIONS, Selection
from placeopt.importers.kubernetes.pods import Pod, Port
from placeopt.importers.kubernetes.topologies import HOSTNAME, Levels
from placeopt.model import Relation

ANYWHERE = frozenset({"", "0.0.0.0", "::"})  # noqa: S104
"""Addresses that mean all of a node's."""


@dataclass
class ExclusiveAmounts:
    """``limits``: Name -> amount of every node. ``taken``: Pod -> what it takes. ``relations``: Those counted."""

    limits: dict[str, int] = field(default_factory=dict)
    taken: dict[str, dict[str, int]] = field(default_factory=lambda: defaultdict(dict))
    relations: set[Relation] = field(default_factory=set)


def exclusive_amounts(pods: PodList, levels: Levels, limits: Mapping[str, int] | None = None) -> ExclusiveAmounts:
    """
    Return the amounts that state the ports of pods, and anti-affinity that concerns several waiting pods.

    ``limits``: Names that a known cluster counts, with the amounts of its nodes: these, whoever waits. A term of
    anti-affinity is no amount where a waiting pod has it and is not selected by it itself (two such pods may share a
    node), or where a namespace that is not listed would decide whom it selects.
    """
    found = ExclusiveAmounts()
    _add_ports(found, pods, limits)
    _add_anti_affinity(found, pods, levels, limits)
    return found


def _add_ports(found: ExclusiveAmounts, pods: PodList, limits: Mapping[str, int] | None) -> None:
    names: dict[str, dict[str, None]] = defaultdict(dict)
    """Port -> names of its addresses, the one of all of them first."""
    for port in sorted({port for pod in pods.work for port in pod.ports}):
        names[_name(port)] |= {_name(port): None, _address(port): None}
    if limits is not None:
        names = {port: {name: None for name in some if name in limits} for port, some in names.items()}
    found.limits |= {name: 1 for some in names.values() for name in some}
    for pod in pods.readable:
        for port in pod.ports:
            some = names.get(_name(port), {})
            own = [_address(port)] if port[0] not in ANYWHERE and _address(port) in some else some
            found.taken[pod.id] |= dict.fromkeys(own, 1)


def _name(port: Port) -> str:
    return f"hostPort:{port[2]}/{port[1]}"


def _address(port: Port) -> str:
    return _name(port) if port[0] in ANYWHERE else f"{_name(port)}@{port[0]}"


def _add_anti_affinity(
    found: ExclusiveAmounts, pods: PodList, levels: Levels, limits: Mapping[str, int] | None
) -> None:
    holders: dict[Relation, dict[str, Pod]] = defaultdict(dict)
    selection = Selection(pods.readable)
    by_node = {HOSTNAME} if levels.is_node(HOSTNAME) else set()
    for pod in pods.readable:
        for relation in pods.relations.get(pod.id, NO_RELATIONS).relations:
            if (relation.kind, relation.weight) == ("apart", None) and relation.level in by_node:
                holders[relation][pod.id] = pod
    names: Counter[str] = Counter()
    for relation, own in holders.items():
        name = f"podAntiAffinity:{_short(relation)}"
        names[name] += 1
        name = job_id(f"{name}+{names[name]}" if names[name] > 1 else name)
        selected = selection.of(relation)
        others = {pod.id: pod for pod in selected if pod.id not in own}
        waiting = {pod.id for pod in [*own.values(), *others.values()] if pod.node is None}
        doubtful = frozenset[str]().union(*(pods.relations[pod_id].doubtful for pod_id in own))
        unsure = any(pod.namespace in doubtful for pod in selected)
        if unsure or not (len(waiting) > 1 if limits is None else name in limits):
            continue
        if not waiting & own.keys() <= {pod.id for pod in selected}:
            continue
        limit = found.limits[name] = max(1, len(others)) if limits is None else limits[name]
        for pod_id in own:
            found.taken[pod_id][name] = limit
        for pod_id in others:
            found.taken[pod_id][name] = 1
        found.relations.add(relation)


def _short(relation: Relation) -> str:
    """Return a name for people: namespaces and labels, where that is all of the selector and short."""
    wanted = [f"{one.key}={one.values[0]}" for one in relation.selector if one.key != NAMESPACE and one.values]
    spaces = [name for one in relation.selector if one.key == NAMESPACE for name in one.values]
    plain = all(one.operator == "In" and (one.key == NAMESPACE or len(one.values) == 1) for one in relation.selector)
    name = f"{','.join(spaces)}/{','.join(wanted)}"
    return (
        name
        if plain and spaces and re.fullmatch(r"[!-~]{1,230}", name)
        else sha256(relation.text.encode()).hexdigest()[:16]
    )
