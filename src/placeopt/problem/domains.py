"""Domains: which part of its machine and which part of the network each GPU and node lies in."""

from __future__ import annotations

import numpy as np

from placeopt.model import Instance, Policy
from placeopt.problem.arrays import IntArray, Level
from placeopt.topology.cluster_topology import ClusterTopology


def gpu_parts(instance: Instance, topology: ClusterTopology, level: str) -> IntArray:
    """Shape (G,): global number of the closest part of ``level`` above each GPU, -1 without."""
    per_machine: list[list[int]] = []
    sizes: list[int] = []
    for machine in instance.cluster.machines:
        parents = {part.id: part for part in machine.parts}
        numbers = {part.id: i for i, part in enumerate(p for p in machine.parts if p.level == level)}
        found = []
        for gpu in machine.gpus:
            at = gpu.part
            while at is not None and parents[at].level != level:
                at = parents[at].parent
            found.append(-1 if at is None else numbers[at])
        per_machine.append(found)
        sizes.append(len(numbers))
    out = np.full(len(topology.gpu_node), -1, dtype=np.int64)
    offset = 0
    for n, m in enumerate(topology.node_machine):
        local = _integers(per_machine[m])
        out[topology.node_gpu_start[n] : topology.node_gpu_start[n + 1]] = np.where(local >= 0, local + offset, -1)
        offset += sizes[m]
    return out


def fragmentation_levels(instance: Instance, policy: Policy, topology: ClusterTopology) -> tuple[Level, ...]:
    """Return the levels whose fragmentation counts and that the cluster has."""
    out: list[Level] = []
    for name, weight in sorted(policy.fragmentation.level_weights.items()):
        if not weight:
            continue
        if name == "node":
            domain = topology.gpu_node.copy()
        elif name in ("socket", "numa", "switch"):
            domain = gpu_parts(instance, topology, name)
        else:
            domain = _domains(instance, topology, name)
        if (domain >= 0).any():
            out.append(Level(name, weight, domain, np.bincount(domain[domain >= 0]).astype(np.int64)))
    return tuple(out)


def _domains(instance: Instance, topology: ClusterTopology, level: str) -> IntArray:
    """Shape (G,): the network domain of ``level`` above each GPU, -1 without."""
    return node_domains(instance, level)[topology.gpu_node]


def node_domains(instance: Instance, level: str) -> IntArray:
    """Shape (N,): the network domain of ``level`` above each node (``node``: the node itself), -1 without."""
    if level == "node":
        return np.arange(len(instance.cluster.nodes), dtype=np.int64)
    of_domain: dict[str | None, int] = {None: -1}
    for d, domain in enumerate(instance.cluster.domains):
        of_domain[domain.id] = d if domain.level == level else of_domain[domain.parent]
    return _integers([of_domain[node.domain] for node in instance.cluster.nodes])


def _integers(values: list[int]) -> IntArray:
    return np.array(values, dtype=np.int64)
