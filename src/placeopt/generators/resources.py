"""The spec ``resources``: GPUs, CPU and memory run out together."""

from typing import Any

import numpy as np

from placeopt.generators.assemble import assemble
from placeopt.generators.busy import Columns
from placeopt.generators.racks import racks, two_socket_machine
from placeopt.generators.size import Size
from placeopt.generators.uniform import NODE_CPU_MILLICORES_PER_GPU, NODE_MEMORY_MIB_PER_GPU, NODES_PER_RACK
from placeopt.model import Instance, Policy
from placeopt.model.policy import Weights

BUSY_SHARE = 0.2
HEAVY, LIGHT = (0.35, 0.65), (0.03, 0.15)
"""Ranges of a job's demand, as parts of a node: of its main resource, and of the other two; ours."""
VALUE = 1000
SPREAD = (80, 121)
"""Scatter of values about the demand, in percent; ours."""


def resources(size: Size) -> Instance:
    """
    Jobs heavy in GPUs, in CPU or in memory, a third each: good mixtures of three kinds fill nodes, all others do not.

    Nodes as in ``uniform``. A job asks for 35 to 65 % of a node in one resource and 3 to 15 % in the others, GPUs
    rounded up to whole ones, or to hundredths of one where it is light in them. It is worth what it asks for, the mean
    over the resources in thousandths of a node, scattered by 20 %. Nothing else counts.
    """
    rng = size.random()
    machine = two_socket_machine("resources", size.gpus, NODE_CPU_MILLICORES_PER_GPU, NODE_MEMORY_MIB_PER_GPU)

    def draw(rng: np.random.Generator, num_jobs: int) -> Columns:
        parts = rng.uniform(*LIGHT, (num_jobs, 3))
        parts[np.arange(num_jobs), rng.integers(3, size=num_jobs)] = rng.uniform(*HEAVY, num_jobs)
        milli = np.ceil(parts[:, 0] * size.gpus * 100).astype(np.int64) * 10
        share = np.where(milli < 1000, milli, 1000)
        gpus = np.where(milli < 1000, 1, -(-milli // 1000))
        worth = np.maximum(1, (VALUE * parts.mean(axis=1) * rng.integers(*SPREAD, num_jobs) / 100).astype(np.int64))
        columns: dict[str, list[Any]] = {
            "workers": [1] * num_jobs,
            "gpus": gpus.tolist(),
            "gpu_milli": share.tolist(),
            "cpu_millicores": (parts[:, 1] * machine.cpu_millicores).astype(np.int64).tolist(),
            "memory_mib": (parts[:, 2] * machine.memory_mib).astype(np.int64).tolist(),
            "value": worth.tolist(),
        }
        return columns

    policy = Policy(name="value", weights=Weights(communication=0, interference=0, fragmentation=0))
    cluster = racks(machine, size.nodes, NODES_PER_RACK)
    return assemble("resources", size, rng, cluster, draw, profiles=False, policy=policy, busy_share=BUSY_SHARE)
