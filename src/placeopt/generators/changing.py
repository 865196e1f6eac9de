"""The specs ``preempt`` and ``defrag``: running jobs block waiting ones, and may be stopped, or moved."""

import numpy as np

from placeopt.generators.busy import Columns
from placeopt.generators.shared import (
    PRIORITY_FACTORS,
    Size,
    assemble,
    in_proportion,
    two_socket_machine,
    value_policy,
    worth,
)
from placeopt.model import Instance
from placeopt.model.policy import Changes

BUSY_SHARE = {"preempt": 0.5, "defrag": 0.25}
"""Part of the GPUs that are held, on three of five nodes; ours."""
RUNNING_GPUS = {1: 0.7, 2: 0.3}
"""Shares of running jobs by GPUs; ours."""
PREEMPTION_PRICE, MOVE_PRICE = 500, 200
"""Costs of a change, in value; a GPU is worth 1000 or more; ours."""
MOVES_PER_NODE = 0.5


def preempt(size: Size) -> Instance:
    """
    Half of the GPUs run jobs of low value that may be stopped at a price; waiting jobs need half or whole nodes.

    Nodes as in ``uniform``. Running jobs have 1 or 2 GPUs, are of the lowest class and preemptible; a stop costs 500.
    Waiting jobs are one worker with half or all of a node's GPUs, equally likely, of any class. There is no other cost.
    """
    changes = Changes(preemptions_max=1_000_000, preemption_price=PREEMPTION_PRICE)
    return _changing("preempt", size, changes, preemptible=True)


def defrag(size: Size) -> Instance:
    """
    A quarter of the GPUs runs scattered small jobs that may be moved; waiting jobs need half or whole nodes.

    As ``preempt``, but running jobs may be moved instead, one for two nodes of the cluster at most, for 200 each.
    """
    changes = Changes(moves_max=max(1, int(MOVES_PER_NODE * size.nodes)), move_price=MOVE_PRICE)
    return _changing("defrag", size, changes, movable=True)


def _changing(spec: str, size: Size, changes: Changes, **flags: bool) -> Instance:
    def draw(rng: np.random.Generator, num_jobs: int) -> Columns:
        gpus = rng.choice([max(1, size.gpus // 2), size.gpus], num_jobs)
        return in_proportion(gpus=gpus) | worth(rng, 1000 * gpus)

    def draw_running(rng: np.random.Generator, num_jobs: int) -> Columns:
        gpus = np.minimum(rng.choice(list(RUNNING_GPUS), num_jobs, p=list(RUNNING_GPUS.values())), size.gpus)
        lowest = {"priority": [0] * num_jobs, "value": (1000 * gpus * PRIORITY_FACTORS[0]).tolist()}
        return in_proportion(gpus=gpus) | worth(rng, 1000 * gpus) | lowest

    policy = value_policy(spec, changes=changes)
    machine = two_socket_machine(spec, size.gpus)
    made = assemble(spec, size, machine, draw, draw_running=draw_running, policy=policy, busy_share=BUSY_SHARE[spec])
    return made.model_copy(update={"running": tuple(held.model_copy(update=flags) for held in made.running)})
