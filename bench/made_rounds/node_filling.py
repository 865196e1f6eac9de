"""The specs ``varied`` and ``resources``: CPU and memory bind, too."""

import numpy as np
import numpy.typing as npt

from placeopt.generators.job_kinds import draw_openb, openb_classes, slowdowns
from placeopt.generators.shared import Columns, Size, assemble, two_socket_machine, value_policy
from placeopt.generators.specs import draw_philly
from placeopt.model import Instance

VARIED_MEMORY_MIB_PER_GPU = 49_152
"""As in openb's most frequent node: 96 cores and 384 GiB for 8 GPUs."""
RESOURCES_BUSY_SHARE = 0.2
HEAVY, LIGHT = (0.35, 0.65), (0.03, 0.15)
"""Ranges of a job's demand, as parts of a node: of its main resource, and of the other two; ours."""
VALUE = 1000
SPREAD = (80, 121)
"""Scatter of values about the demand, in percent; ours."""


def varied(size: Size) -> Instance:
    """
    As ``uniform``, but CPU and memory as openb's pods ask for them: CPU and memory bind, node states differ widely.

    Nodes have 12 cores and 48 GiB a GPU. A share of a GPU requests CPU and memory of a random openb pod with a share;
    every whole GPU of a job for CPU and memory per GPU of a random openb pod with whole GPUs (the same for all its
    GPUs). A worker never requests more than a node has. Pods are drawn as often as the trace holds them.

    With 1,000 nodes of 4 GPUs the running jobs leave several hundred distinct states (free GPU-milli, CPU, memory).
    """
    machine = two_socket_machine("varied", size.gpus, memory_mib_per_gpu=VARIED_MEMORY_MIB_PER_GPU)

    def draw(rng: np.random.Generator, num_jobs: int) -> Columns:
        columns = draw_philly(rng, num_jobs, size)
        gpus = np.array(columns["gpus"], dtype=np.int64)
        shared = np.array(columns["gpu_milli"], dtype=np.int64) < 1000
        cpu, memory = _draw_cpu_and_memory(rng, gpus, shared)
        columns["cpu_millicores"] = np.minimum(cpu, machine.cpu_millicores).tolist()
        columns["memory_mib"] = np.minimum(memory, machine.memory_mib).tolist()
        return columns

    return assemble("varied", size, machine, draw, slowdowns=slowdowns())


def resources(size: Size) -> Instance:
    """
    Jobs heavy in GPUs, in CPU or in memory, a third each: good mixtures of three kinds fill nodes, all others do not.

    Nodes as in ``uniform``. A job requests 35 to 65 % of a node in one resource and 3 to 15 % in the others, GPUs
    rounded up to whole ones, or to hundredths of one where it is light in them. It is worth what it requests, the mean
    over the resources in thousandths of a node, scattered by 20 %. Nothing else counts.
    """
    machine = two_socket_machine("resources", size.gpus)

    def draw(rng: np.random.Generator, num_jobs: int) -> Columns:
        parts = rng.uniform(*LIGHT, (num_jobs, 3))
        parts[np.arange(num_jobs), rng.integers(3, size=num_jobs)] = rng.uniform(*HEAVY, num_jobs)
        milli = np.ceil(parts[:, 0] * size.gpus * 100).astype(np.int64) * 10
        share = np.where(milli < 1000, milli, 1000)
        gpus = np.where(milli < 1000, 1, -(-milli // 1000))
        value = VALUE * parts.mean(axis=1) * rng.integers(*SPREAD, num_jobs) / 100
        return {
            "workers": [1] * num_jobs,
            "gpus": gpus.tolist(),
            "gpu_milli": share.tolist(),
            "cpu_millicores": (parts[:, 1] * machine.cpu_millicores).astype(np.int64).tolist(),
            "memory_mib": (parts[:, 2] * machine.memory_mib).astype(np.int64).tolist(),
            "value": np.maximum(1, value.astype(np.int64)).tolist(),
        }

    return assemble("resources", size, machine, draw, policy=value_policy(), busy_share=RESOURCES_BUSY_SHARE)


def _draw_cpu_and_memory(
    rng: np.random.Generator, gpus: npt.NDArray[np.int64], shared: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
    """Return CPU and memory of a worker with ``gpus`` GPUs, or with a share of one where ``shared``."""
    classes = openb_classes()
    of_share = classes.gpu_milli < 1000
    pod = np.where(shared, draw_openb(rng, gpus.size, of_share), draw_openb(rng, gpus.size, ~of_share))
    per = classes.gpus[pod]
    return gpus * (classes.cpu_millicores[pod] // per), gpus * (classes.memory_mib[pod] // per)
