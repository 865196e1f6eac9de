"""The spec ``cubemesh``: DGX-1 machines, where it matters which GPUs of a node a job gets."""

from collections.abc import Mapping

import numpy as np

from placeopt.errors import BadInput
from placeopt.generators.assemble import assemble
from placeopt.generators.busy import Columns
from placeopt.generators.racks import racks
from placeopt.generators.size import Size
from placeopt.generators.uniform import NODES_PER_RACK, draw_profiles, in_proportion
from placeopt.generators.worth import worth
from placeopt.model import Instance
from placeopt.topology.builders import dgx1

JOB_GPUS = {1: 0.4, 2: 0.3, 4: 0.2, 8: 0.1}
"""Shares of jobs by number of GPUs; ours."""

JOB_CPU_MILLICORES_PER_GPU = 3_000
JOB_MEMORY_MIB_PER_GPU = 40_960
"""Of 5 cores and 64 GiB that a DGX-1 has for each GPU, so GPUs run out first."""


def cubemesh(size: Size) -> Instance:
    """
    DGX-1 nodes with NVLink in a hybrid cube mesh, and jobs of 1, 2, 4 and 8 GPUs that communicate.

    Nodes: ``placeopt.topology.builders.dgx1``, 8 GPUs each, in racks of 32; 35 % of the GPUs are busy, on random GPUs
    of their nodes. Jobs: one worker of 1 (40 %), 2 (30 %), 4 (20 %) or 8 GPUs (10 %), 3 cores and 40 GiB a GPU, one of
    six profiles with its communication weight.

    Raises
    ------
    BadInput
        If ``size.gpus`` is not 8.
    """
    if size.gpus != 8:
        raise BadInput(f"gpus: {size.gpus}, expected 8 with spec 'cubemesh', whose nodes are DGX-1")
    rng = size.random()

    def draw(rng: np.random.Generator, num_jobs: int) -> Columns:
        return single_workers(rng, num_jobs, JOB_GPUS)

    return assemble("cubemesh", size, rng, racks(dgx1(), size.nodes, NODES_PER_RACK), draw, profiles=True)


def single_workers(rng: np.random.Generator, num_jobs: int, shares: Mapping[int, float]) -> Columns:
    """Draw jobs of one worker on a DGX-1; ``shares``: parts of the jobs by number of GPUs."""
    gpus = rng.choice(list(shares), num_jobs, p=list(shares.values()))
    columns = in_proportion(gpus=gpus, cpu_millicores=JOB_CPU_MILLICORES_PER_GPU, memory_mib=JOB_MEMORY_MIB_PER_GPU)
    return columns | draw_profiles(rng, columns["gpus"]) | worth(rng, 1000 * gpus)
