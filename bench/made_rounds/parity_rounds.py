"""The spec ``parity``: workers of more than half a node."""

import numpy as np

from placeopt import BadInput
from placeopt.generators.shared import Columns, Size, assemble, in_proportion, two_socket_machine, value_policy, worth
from placeopt.model import Instance, Split

PARITY_PER_RACK = 5
"""Odd, so that halves of racks are no whole nodes."""
PARITY_WORKERS = {1: 0.6, 2: 0.2, 4: 0.2}
"""Shares of jobs by number of workers; ours."""
HALVES = 0.5
"""Share of the gangs that must be split into halves over two racks; ours."""


def parity(size: Size) -> Instance:
    """
    Workers of one GPU more than half a node: each node takes one, whatever the count of free GPUs says.

    Nodes as in ``uniform``, in racks of five, all free. Jobs have 1, 2 or 4 such workers (60, 20, 20 %), half of the
    gangs split into equal halves over two racks. With 5 jobs on 6 nodes of 8 GPUs there are GPUs for all, and nodes for
    two thirds; relaxations that see GPUs alone do not see that.
    """
    if size.gpus < 3:
        raise BadInput(f"gpus: {size.gpus}, expected 3 or more with spec 'parity'")
    each = size.gpus // 2 + 1

    def draw(rng: np.random.Generator, num_jobs: int) -> Columns:
        workers = rng.choice(list(PARITY_WORKERS), num_jobs, p=list(PARITY_WORKERS.values()))
        workers = np.where(workers > size.nodes, 1, workers)
        halves = (rng.random(num_jobs) < HALVES) & (workers > 1) & (size.nodes > PARITY_PER_RACK)
        columns = in_proportion(workers=workers, gpus=np.full(num_jobs, each))
        columns["splits"] = [
            (Split(level="rack", domains=2, workers=count // 2),) if half else ()
            for count, half in zip(workers.tolist(), halves.tolist(), strict=True)
        ]
        return columns | worth(rng, 1000 * workers * each)

    machine = two_socket_machine("parity", size.gpus)
    return assemble(
        "parity", size, machine, draw, policy=value_policy(), busy_share=0.0, nodes_per_rack=PARITY_PER_RACK
    )
