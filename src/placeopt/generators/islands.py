"""The spec ``islands``: jobs that do not divide the NVLink islands they had better stay in."""

from typing import Any

import numpy as np

from placeopt.errors import BadInput
from placeopt.generators.assemble import assemble
from placeopt.generators.busy import Columns
from placeopt.generators.cubemesh import JOB_CPU_MILLICORES_PER_GPU, JOB_MEMORY_MIB_PER_GPU
from placeopt.generators.racks import racks
from placeopt.generators.size import Size
from placeopt.generators.uniform import NODES_PER_RACK, draw_profiles
from placeopt.generators.worth import worth
from placeopt.model import Instance
from placeopt.topology.builders import dgx1

JOB_GPUS = {2: 0.2, 3: 0.3, 4: 0.2, 5: 0.15, 6: 0.15}
"""Shares of jobs by GPUs; ours."""
BUSY_SHARE = 0.15


def islands(size: Size) -> Instance:
    """
    DGX-1 nodes, quads of GPUs with NVLink, and jobs of 2 to 6 GPUs that communicate: threes and fives spoil quads.

    Nodes as in ``cubemesh``, 15 % of the GPUs busy. Jobs of 2, 3, 4, 5, 6 GPUs with 20, 30, 20, 15, 15 %, one worker
    each, with the profiles of ``cubemesh``: which three of a quad are taken decides what the next job pays.

    Raises
    ------
    BadInput
        If ``size.gpus`` is not 8.
    """
    if size.gpus != 8:
        raise BadInput(f"gpus: {size.gpus}, expected 8 with spec 'islands', whose nodes are DGX-1")
    rng = size.random()

    def draw(rng: np.random.Generator, num_jobs: int) -> Columns:
        gpus = rng.choice(list(JOB_GPUS), num_jobs, p=list(JOB_GPUS.values()))
        columns: dict[str, list[Any]] = {
            "workers": [1] * num_jobs,
            "gpus": gpus.tolist(),
            "gpu_milli": [1000] * num_jobs,
            "cpu_millicores": (gpus * JOB_CPU_MILLICORES_PER_GPU).tolist(),
            "memory_mib": (gpus * JOB_MEMORY_MIB_PER_GPU).tolist(),
        }
        return columns | draw_profiles(rng, columns["gpus"]) | worth(rng, 1000 * gpus)

    cluster = racks(dgx1(), size.nodes, NODES_PER_RACK)
    return assemble("islands", size, rng, cluster, draw, profiles=True, busy_share=BUSY_SHARE)
