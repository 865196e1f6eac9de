"""The spec ``islands``: jobs whose sizes do not divide the NVLink islands in which they communicate best."""

import numpy as np

from placeopt.errors import BadInput
from placeopt.generators.assemble import assemble
from placeopt.generators.busy import Columns
from placeopt.generators.cubemesh import single_workers
from placeopt.generators.racks import racks
from placeopt.generators.size import Size
from placeopt.generators.uniform import NODES_PER_RACK
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
        return single_workers(rng, num_jobs, JOB_GPUS)

    cluster = racks(dgx1(), size.nodes, NODES_PER_RACK)
    return assemble("islands", size, rng, cluster, draw, profiles=True, busy_share=BUSY_SHARE)
