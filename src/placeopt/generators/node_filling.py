"""The specs ``uniform`` and ``fractions``: what fills nodes, and what is left over."""

import numpy as np

from placeopt.generators.busy import Columns
from placeopt.generators.job_kinds import draw_openb, openb_classes, philly_sizes, philly_workers, slowdowns
from placeopt.generators.shared import (
    Size,
    assemble,
    draw_profiles,
    in_proportion,
    two_socket_machine,
    value_policy,
    worth,
)
from placeopt.model import Instance


def uniform(size: Size) -> Instance:
    """
    Equal nodes, GPU shares and gangs in the proportions of Philly: the plain case, where only GPUs bind.

    Nodes: two sockets, half of the GPUs on each; 12 cores and 64 GiB a GPU; racks of 32. No bandwidth is stated, so no
    uplink binds. 35 % of the GPUs are busy.

    Jobs: 1/4, 1/2, 1, 2, 4, 8, 16, 32 GPUs (Philly's), one worker up to a node, gangs above; 8 cores, 40 GiB a GPU.
    On average a job requests one GPU, so from about two thirds as many jobs as GPUs on there is more demand than room.
    One of six profiles (SC'17's), each as likely, with its communication weight. Value: GPU-milli times 1, 2 or 4
    by priority class.
    """
    machine = two_socket_machine("uniform", size.gpus)
    return assemble("uniform", size, machine, lambda rng, jobs: draw_philly(rng, jobs, size), slowdowns=slowdowns())


def fractions(size: Size) -> Instance:
    """
    GPU shares of the 20 sizes of openb, single GPUs and whole jobs: filling GPUs without a remainder is the difficulty.

    Nodes as in ``uniform``. Sizes are drawn as often as openb's default list has GPU pods of them: 55 % one GPU, 44 %
    shares of 50 to 810 GPU-milli, 1 % jobs of 2, 4 or 8 GPUs on one node (of a node's GPUs at most). CPU and memory
    are in proportion and never bind; no communication, no profiles. The policy weighs fragmentation only.
    """

    def draw(rng: np.random.Generator, num_jobs: int) -> Columns:
        classes, pod = openb_classes(), draw_openb(rng, num_jobs)
        gpus, milli = np.minimum(classes.gpus[pod], size.gpus), classes.gpu_milli[pod]
        return in_proportion(gpus=gpus, gpu_milli=milli) | worth(rng, gpus * milli)

    policy = value_policy("fragmentation", fragmentation=1000)
    return assemble("fractions", size, two_socket_machine("fractions", size.gpus), draw, policy=policy)


def draw_philly(rng: np.random.Generator, num_jobs: int, size: Size) -> Columns:
    """Return jobs of Philly's sizes with profile, CPU and memory in proportion to their GPUs, and value."""
    milli = philly_sizes(rng, num_jobs, size.num_gpus)
    shape = philly_workers(rng, milli, size.gpus)
    columns = in_proportion(workers=shape["workers"], gpus=shape["gpus"], gpu_milli=shape["gpu_milli"])
    return columns | draw_profiles(rng, (shape["workers"] * shape["gpus"]).tolist()) | worth(rng, milli)
