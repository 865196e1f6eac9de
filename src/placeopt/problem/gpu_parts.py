"""Parts of machines, sockets and the like, that hold GPUs."""

from __future__ import annotations

import numpy as np

from placeopt.model import Instance
from placeopt.problem.arrays import IntArray
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
