"""The spec ``parity``: there are enough GPUs for all jobs, yet no plan can place all."""

import numpy as np

from placeopt.errors import BadInput
from placeopt.generators.assemble import assemble
from placeopt.generators.busy import Columns
from placeopt.generators.racks import racks, two_socket_machine
from placeopt.generators.size import Size
from placeopt.generators.uniform import (
    NODE_CPU_MILLICORES_PER_GPU,
    NODE_MEMORY_MIB_PER_GPU,
    in_proportion,
)
from placeopt.generators.worth import worth
from placeopt.model import Instance, Policy, Split
from placeopt.model.policy import Weights

NODES_PER_RACK = 5
"""Odd, so that halves of racks are no whole nodes."""
WORKERS = {1: 0.6, 2: 0.2, 4: 0.2}
"""Shares of jobs by number of workers; ours."""
HALVES = 0.5
"""Share of the gangs that must be split into halves over two racks; ours."""


def parity(size: Size) -> Instance:
    """
    Workers of one GPU more than half a node: each node takes one, whatever the count of free GPUs says.

    Nodes as in ``uniform``, in racks of five, all free. Jobs have 1, 2 or 4 such workers (60, 20, 20 %), half of the
    gangs split into equal halves over two racks. With 5 jobs on 6 nodes of 8 GPUs there are GPUs for all, and nodes for
    two thirds; relaxations that see GPUs alone do not see that.

    Raises
    ------
    BadInput
        If a node has fewer than 3 GPUs.
    """
    if size.gpus < 3:
        raise BadInput(f"gpus: {size.gpus}, expected 3 or more with spec 'parity'")
    rng = size.random()
    machine = two_socket_machine("parity", size.gpus, NODE_CPU_MILLICORES_PER_GPU, NODE_MEMORY_MIB_PER_GPU)
    each = size.gpus // 2 + 1

    def draw(rng: np.random.Generator, num_jobs: int) -> Columns:
        workers = rng.choice(list(WORKERS), num_jobs, p=list(WORKERS.values()))
        workers = np.where(workers > size.nodes, 1, workers)
        halves = (rng.random(num_jobs) < HALVES) & (workers > 1) & (size.nodes > NODES_PER_RACK)
        columns = in_proportion(workers=workers, gpus=np.full(num_jobs, each))
        columns["splits"] = [
            (Split(level="rack", domains=2, workers=count // 2),) if half else ()
            for count, half in zip(workers.tolist(), halves.tolist(), strict=True)
        ]
        return columns | worth(rng, 1000 * workers * each)

    policy = Policy(name="value", weights=Weights(communication=0, interference=0, fragmentation=0))
    cluster = racks(machine, size.nodes, NODES_PER_RACK)
    return assemble("parity", size, rng, cluster, draw, profiles=False, policy=policy, busy_share=0.0)
