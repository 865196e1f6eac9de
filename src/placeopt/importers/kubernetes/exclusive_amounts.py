"""
What pods exclude each other from on one node, as amounts of the node: host ports, and anti-affinity by hostname.

A node has n of a name; a pod that excludes all others takes n, one that only some exclude takes 1.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

from placeopt.importers.kubernetes.nodes import NodeList
from placeopt.importers.kubernetes.pod_affinity import PodAffinityTerm
from placeopt.importers.kubernetes.pod_list import ExclusiveAmounts, PodList
from placeopt.importers.kubernetes.pods import Pod, Port, job_id

ANYWHERE = frozenset({"", "0.0.0.0", "::"})  # noqa: S104
"""Addresses that mean all of a node's."""
PORT, ANTI_AFFINITY = "hostPort:", "podAntiAffinity:"
"""Begin the names."""


def port_name(port: Port) -> str:
    """Return the name of a port of nodes as an amount."""
    _, protocol, number = port
    return f"{PORT}{number}/{protocol}"


def exclusive_amounts(pods: PodList, nodes: NodeList, limits: Mapping[str, int] | None = None) -> ExclusiveAmounts:
    """
    Return the amounts that state the ports of waiting pods, and anti-affinity that concerns several waiting pods.

    ``limits``: Names that a known cluster counts, with the amounts of its nodes: these, whoever waits. A term of
    anti-affinity is no amount where a waiting pod has it and is not selected by it itself (two such pods may share a
    node), or where a namespace that is not listed would decide whom it selects.
    """
    found = ExclusiveAmounts()
    _add_ports(found, pods.listed, limits)
    _add_anti_affinity(found, pods, nodes, limits)
    return found


def _add_ports(found: ExclusiveAmounts, pods: Iterable[Pod], limits: Mapping[str, int] | None) -> None:
    addresses: dict[str, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))  # port, pod
    wanted = set(limits or ())
    for pod in pods:
        for port in pod.ports:
            addresses[port_name(port)][pod.id].add(port[0])
            if pod.node is None and limits is None:
                wanted.add(port_name(port))
    for name in sorted(wanted & addresses.keys()):
        single = set().union(*addresses[name].values()) - ANYWHERE
        if limits is None:
            alone = single if len(single) > 1 else set()
            limit = max(1, len(single))
        else:
            alone = {address for address in single if f"{name}@{address}" in limits}
            limit = limits[name]
        found.limits |= {name: limit} | {f"{name}@{address}": 1 for address in alone}
        for pod_id, own in addresses[name].items():
            found.taken[pod_id][name] = len(own) if own <= alone else limit
            found.taken[pod_id] |= {f"{name}@{address}": 1 for address in own & alone}


def _add_anti_affinity(
    found: ExclusiveAmounts, pods: PodList, nodes: NodeList, limits: Mapping[str, int] | None
) -> None:
    holders: dict[str, dict[str, Pod]] = defaultdict(dict)
    term_of: dict[str, PodAffinityTerm] = {}
    for pod in pods.listed:
        for term in pods.terms[pod.id].anti_affinity if pod.id in pods.terms else ():
            if nodes.level_of(term.key) == "node":
                term_of[term.text] = term
                holders[term.text][pod.id] = pod
    names: Counter[str] = Counter()
    for text, term in term_of.items():
        own, name = holders[text], f"{ANTI_AFFINITY}{term.name}"
        names[name] += 1
        name = job_id(f"{name}+{names[name]}" if names[name] > 1 else name)
        selected, unsure = pods.selection.of(term)
        others = {pod.id: pod for pod in selected if pod.id not in own}
        waiting = {pod.id for pod in [*own.values(), *others.values()] if pod.node is None}
        if unsure or not (len(waiting) > 1 if limits is None else name in limits):
            continue
        if not waiting & own.keys() <= {pod.id for pod in selected}:
            continue
        limit = found.limits[name] = max(1, len(others)) if limits is None else limits[name]
        for pod_id in own:
            found.taken[pod_id][name] = limit
        for pod_id in others:
            found.taken[pod_id][name] = 1
        found.terms.add(text)
