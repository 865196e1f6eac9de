"""The specs ``cubemesh`` and ``islands``: DGX-1 machines, where it matters which GPUs of a node a job gets."""

from collections.abc import Mapping

import numpy as np

from placeopt import BadInput
from placeopt.generators.job_kinds import slowdowns
from placeopt.generators.shared import BUSY_SHARE, Columns, Size, assemble, draw_profiles, in_proportion, worth
from placeopt.model import Instance
from placeopt.topology import dgx1

CUBEMESH_GPUS = {1: 0.4, 2: 0.3, 4: 0.2, 8: 0.1}
ISLANDS_GPUS = {2: 0.2, 3: 0.3, 4: 0.2, 5: 0.15, 6: 0.15}
"""Shares of jobs by number of GPUs; ours."""
ISLANDS_BUSY_SHARE = 0.15
JOB_CPU_MILLICORES_PER_GPU = 3_000
JOB_MEMORY_MIB_PER_GPU = 40_960
"""Of 5 cores and 64 GiB that a DGX-1 has for each GPU, so GPUs run out first."""


def cubemesh(size: Size) -> Instance:
    """
    DGX-1 nodes with NVLink in a hybrid cube mesh, and jobs of 1, 2, 4 and 8 GPUs that communicate.

    Nodes: ``placeopt.topology.dgx1``, 8 GPUs each, in racks of 32; 35 % of the GPUs are busy, on random GPUs
    of their nodes. Jobs: one worker of 1 (40 %), 2 (30 %), 4 (20 %) or 8 GPUs (10 %), 3 cores and 40 GiB a GPU, one of
    six profiles with its communication weight.
    """
    return _dgx1_round("cubemesh", size, CUBEMESH_GPUS, BUSY_SHARE)


def islands(size: Size) -> Instance:
    """
    DGX-1 nodes, quads of GPUs with NVLink, and jobs of 2 to 6 GPUs that communicate: threes and fives spoil quads.

    Nodes as in ``cubemesh``, 15 % of the GPUs busy. Jobs of 2, 3, 4, 5, 6 GPUs with 20, 30, 20, 15, 15 %, one worker
    each, with the profiles of ``cubemesh``: which three of a quad are taken decides what the next job pays.
    """
    return _dgx1_round("islands", size, ISLANDS_GPUS, ISLANDS_BUSY_SHARE)


def _dgx1_round(spec: str, size: Size, shares: Mapping[int, float], busy_share: float) -> Instance:
    """Return a round of jobs of one worker; ``shares``: parts of the jobs by number of GPUs."""
    if size.gpus != 8:
        raise BadInput(f"gpus: {size.gpus}, expected 8 with spec {spec!r}, whose nodes are DGX-1")

    def draw(rng: np.random.Generator, num_jobs: int) -> Columns:
        gpus = rng.choice(list(shares), num_jobs, p=list(shares.values()))
        columns = in_proportion(gpus=gpus, cpu_millicores=JOB_CPU_MILLICORES_PER_GPU, memory_mib=JOB_MEMORY_MIB_PER_GPU)
        return columns | draw_profiles(rng, columns["gpus"]) | worth(rng, 1000 * gpus)

    return assemble(spec, size, dgx1(), draw, slowdowns=slowdowns(), busy_share=busy_share)
