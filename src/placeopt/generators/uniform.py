"""The spec ``uniform``: equal nodes, sizes as in Philly."""

import numpy as np
from numpy.typing import NDArray

from placeopt.generators import philly
from placeopt.generators.assemble import assemble
from placeopt.generators.busy import Columns
from placeopt.generators.profiles import PROFILES, WEIGHTS
from placeopt.generators.racks import racks, two_socket_machine
from placeopt.generators.size import Size
from placeopt.generators.worth import worth
from placeopt.model import Instance

NODES_PER_RACK = 32
NODE_CPU_MILLICORES_PER_GPU = 12_000
NODE_MEMORY_MIB_PER_GPU = 65_536
JOB_CPU_MILLICORES_PER_GPU = 8_000
JOB_MEMORY_MIB_PER_GPU = 40_960
"""CPU and memory per GPU of a job: two thirds of a node's, so GPUs always run out first."""


def uniform(size: Size) -> Instance:
    """
    Equal nodes, GPU shares and gangs in the proportions of Philly: the plain case, where only GPUs bind.

    Nodes: two sockets, half of the GPUs on each; 12 cores and 64 GiB a GPU; racks of 32. No bandwidth is stated, so no
    uplink binds. 35 % of the GPUs are busy.

    Jobs: 1/4, 1/2, 1, 2, 4, 8, 16, 32 GPUs (``philly``), one worker up to a node, gangs above; 8 cores, 40 GiB a GPU.
    On average a job asks for one GPU, so from about two thirds as many jobs as GPUs on there is more demand than room.
    One of six profiles (``profiles``), each as likely, with its communication weight. Value: GPU-milli times 1, 2 or 4
    by priority class (``worth``).
    """
    rng = size.random()
    machine = two_socket_machine("uniform", size.gpus, NODE_CPU_MILLICORES_PER_GPU, NODE_MEMORY_MIB_PER_GPU)

    def draw(rng: np.random.Generator, num_jobs: int) -> Columns:
        return draw_philly(rng, num_jobs, size)

    return assemble("uniform", size, rng, racks(machine, size.nodes, NODES_PER_RACK), draw, profiles=True)


def draw_philly(rng: np.random.Generator, num_jobs: int, size: Size) -> Columns:
    """Return jobs of Philly's sizes with profile, CPU and memory in proportion to their GPUs, and value."""
    milli = philly.draw_sizes(rng, num_jobs, size.num_gpus)
    shape = philly.workers(rng, milli, size.gpus)
    columns = in_proportion(workers=shape["workers"], gpus=shape["gpus"], gpu_milli=shape["gpu_milli"])
    return columns | draw_profiles(rng, (shape["workers"] * shape["gpus"]).tolist()) | worth(rng, milli)


def in_proportion(
    *,
    gpus: NDArray[np.int64],
    workers: NDArray[np.int64] | int = 1,
    gpu_milli: NDArray[np.int64] | int = 1000,
    cpu_millicores: int = JOB_CPU_MILLICORES_PER_GPU,
    memory_mib: int = JOB_MEMORY_MIB_PER_GPU,
) -> Columns:
    """
    Return the columns of jobs with CPU and memory in proportion to their GPUs, shape (jobs,), or one value for all.

    ``gpus`` of each worker and ``gpu_milli`` of each GPU; ``cpu_millicores`` and ``memory_mib`` of a whole GPU.
    """
    share = gpus * gpu_milli
    return {
        "workers": np.broadcast_to(workers, len(gpus)).tolist(),
        "gpus": gpus.tolist(),
        "gpu_milli": np.broadcast_to(gpu_milli, len(gpus)).tolist(),
        "cpu_millicores": (share * cpu_millicores // 1000).tolist(),
        "memory_mib": (share * memory_mib // 1000).tolist(),
    }


def draw_profiles(rng: np.random.Generator, num_gpus: list[int]) -> Columns:
    """Draw columns ``profile`` and ``communication_weight``, which is 0 for jobs of a single GPU."""
    chosen = rng.integers(0, len(PROFILES), len(num_gpus)).tolist()
    return {
        "profile": [PROFILES[profile] for profile in chosen],
        "communication_weight": [
            WEIGHTS[profile] if gpus > 1 else 0 for profile, gpus in zip(chosen, num_gpus, strict=True)
        ],
    }
