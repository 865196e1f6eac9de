"""The spec ``fractions``: many sizes of GPU shares."""

import numpy as np

from placeopt.generators.assemble import assemble
from placeopt.generators.busy import Columns
from placeopt.generators.openb_classes import openb_classes
from placeopt.generators.racks import racks, two_socket_machine
from placeopt.generators.size import Size
from placeopt.generators.uniform import (
    NODE_CPU_MILLICORES_PER_GPU,
    NODE_MEMORY_MIB_PER_GPU,
    NODES_PER_RACK,
    in_proportion,
)
from placeopt.generators.worth import worth
from placeopt.model import Instance, Policy
from placeopt.model.policy import Weights


def fractions(size: Size) -> Instance:
    """
    GPU shares of the 20 sizes of openb, single GPUs and whole jobs: filling GPUs without a remainder is the difficulty.

    Nodes as in ``uniform``. Sizes are drawn as often as openb's default list has GPU pods of them: 55 % one GPU, 44 %
    shares of 50 to 810 GPU-milli, 1 % jobs of 2, 4 or 8 GPUs on one node (of a node's GPUs at most). CPU and memory
    are in proportion and never bind; no communication, no profiles. The policy weighs fragmentation only.
    """
    rng = size.random()
    machine = two_socket_machine("fractions", size.gpus, NODE_CPU_MILLICORES_PER_GPU, NODE_MEMORY_MIB_PER_GPU)

    def draw(rng: np.random.Generator, num_jobs: int) -> Columns:
        classes = openb_classes()
        pod = classes.draw(rng, num_jobs, np.ones(classes.pods.size, dtype=bool))
        gpus, milli = np.minimum(classes.gpus[pod], size.gpus), classes.gpu_milli[pod]
        return in_proportion(gpus=gpus, gpu_milli=milli) | worth(rng, gpus * milli)

    policy = Policy(name="fragmentation", weights=Weights(communication=0, interference=0, fragmentation=1000))
    cluster = racks(machine, size.nodes, NODES_PER_RACK)
    return assemble("fractions", size, rng, cluster, draw, profiles=False, policy=policy)
