"""Domains: which part of its machine and which part of the network each GPU and node lies in."""

from __future__ import annotations

import numpy as np

from placeopt.model import Instance, Policy
from placeopt.problem.arrays import IntArray
from placeopt.problem.problem import Level
from placeopt.topology.cluster_topology import ClusterTopology


def gpu_parts(instance: Instance, topology: ClusterTopology, level: str) -> IntArray:
    """Shape (G,): global number of the closest part of ``level`` above each GPU, -1 without."""
    machines = instance.cluster.machines
    most = max((len(machine.gpus) for machine in machines), default=0)
    part_of = np.full((len(machines), most), -1, dtype=np.int64)  # inside a machine, by GPU index
    parts = np.zeros(len(machines), dtype=np.int64)
    for m, machine in enumerate(machines):
        record_of = {part.id: part for part in machine.parts}
        numbers = {part.id: i for i, part in enumerate(p for p in machine.parts if p.level == level)}
        for g, gpu in enumerate(machine.gpus):
            at = gpu.part
            while at is not None and record_of[at].level != level:
                at = record_of[at].parent
            part_of[m, g] = -1 if at is None else numbers[at]
        parts[m] = len(numbers)
    per_node = parts[topology.node_machine]
    first = (np.cumsum(per_node) - per_node)[topology.gpu_node]
    local = part_of[topology.node_machine[topology.gpu_node], topology.gpu_index]
    numbered: IntArray = np.where(local >= 0, local + first, -1)
    return numbered


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
            domain = node_domains(instance, name)[topology.gpu_node]
        if (domain >= 0).any():
            out.append(Level(name, weight, domain, np.bincount(domain[domain >= 0]).astype(np.int64)))
    return tuple(out)


def node_domains(instance: Instance, level: str) -> IntArray:
    """Shape (N,): the network domain of ``level`` above each node (``node``: the node itself), -1 without."""
    if level == "node":
        return np.arange(len(instance.cluster.nodes), dtype=np.int64)
    of_domain: dict[str | None, int] = {None: -1}
    for d, domain in enumerate(instance.cluster.domains):
        of_domain[domain.id] = d if domain.level == level else of_domain[domain.parent]
    return np.array([of_domain[node.domain] for node in instance.cluster.nodes], dtype=np.int64)
