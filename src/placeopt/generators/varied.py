"""The spec ``varied``: CPU and memory bind too, and node states differ widely."""

import numpy as np
import numpy.typing as npt

from placeopt.generators.assemble import assemble
from placeopt.generators.busy import Columns
from placeopt.generators.openb_classes import openb_classes
from placeopt.generators.racks import racks, two_socket_machine
from placeopt.generators.size import Size
from placeopt.generators.uniform import NODES_PER_RACK, draw_philly
from placeopt.model import Instance

NODE_CPU_MILLICORES_PER_GPU = 12_000
NODE_MEMORY_MIB_PER_GPU = 49_152
"""As in openb's most frequent node: 96 cores and 384 GiB for 8 GPUs."""


def varied(size: Size) -> Instance:
    """
    As ``uniform``, but CPU and memory as openb's pods ask for them: CPU and memory bind, node states differ widely.

    Nodes have 12 cores and 48 GiB a GPU. A share of a GPU asks for CPU and memory of a random openb pod with a share;
    every whole GPU of a job for CPU and memory per GPU of a random openb pod with whole GPUs (the same for all its
    GPUs). A worker never asks for more than a node has. Pods are drawn as often as the trace holds them.

    With 1,000 nodes of 4 GPUs the running jobs leave several hundred distinct states (free GPU-milli, CPU, memory).
    """
    rng = size.random()
    machine = two_socket_machine("varied", size.gpus, NODE_CPU_MILLICORES_PER_GPU, NODE_MEMORY_MIB_PER_GPU)

    def draw(rng: np.random.Generator, num_jobs: int) -> Columns:
        columns = draw_philly(rng, num_jobs, size)
        gpus = np.array(columns["gpus"], dtype=np.int64)
        shared = np.array(columns["gpu_milli"], dtype=np.int64) < 1000
        cpu, memory = _draw_cpu_and_memory(rng, gpus, shared)
        columns["cpu_millicores"] = np.minimum(cpu, machine.cpu_millicores).tolist()
        columns["memory_mib"] = np.minimum(memory, machine.memory_mib).tolist()
        return columns

    return assemble("varied", size, rng, racks(machine, size.nodes, NODES_PER_RACK), draw, profiles=True)


def _draw_cpu_and_memory(
    rng: np.random.Generator, gpus: npt.NDArray[np.int64], shared: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return CPU and memory of a worker with ``gpus`` GPUs, or with a share of one where ``shared``."""
    classes = openb_classes()
    of_share = classes.gpu_milli < 1000
    pod = np.where(shared, classes.draw(rng, gpus.size, of_share), classes.draw(rng, gpus.size, ~of_share))
    per = classes.gpus[pod]
    return gpus * (classes.cpu_millicores[pod] // per), gpus * (classes.memory_mib[pod] // per)
