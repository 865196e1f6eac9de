"""The specs but ``planted``: what fills nodes, gangs over nodes and racks, and running jobs that block waiting ones."""

import numpy as np

from placeopt.generators.job_kinds import draw_openb, openb_classes, philly_sizes, philly_workers, slowdowns
from placeopt.generators.shared import (
    PRIORITY_FACTORS,
    Columns,
    Size,
    assemble,
    draw_profiles,
    in_proportion,
    two_socket_machine,
    value_policy,
    worth,
)
from placeopt.model import Instance, Split
from placeopt.model.policy import Changes

GANGS_PER_RACK = 8
"""Small racks, so that gangs span several."""

GANGS_BUSY_SHARE = 0.2
WORKERS = {1: 0.3, 2: 0.2, 4: 0.2, 8: 0.15, 16: 0.1, 32: 0.05}
"""Shares of jobs by number of workers; ours."""

CONDITIONS = {"free": 0.4, "one_rack": 0.25, "two_racks": 0.15, "spread": 0.2}
"""Shares of the gangs by condition; ours."""

_ONE_RACK = (Split(level="rack", domains=1),)
_TWO_RACKS = {count: (Split(level="rack", domains=2, workers=count // 2),) for count in WORKERS if count > 1}
CHANGING_BUSY_SHARE = {"preempt": 0.5, "defrag": 0.25}
"""Part of the GPUs that are held, on three of five nodes; ours."""
RUNNING_GPUS = {1: 0.7, 2: 0.3}
"""Shares of running jobs by GPUs; ours."""
PREEMPTION_PRICE, MOVE_PRICE = 500, 200
"""Costs of a change, in value; a GPU is worth 1000 or more; ours."""
MOVES_PER_NODE = 0.5


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


def gangs(size: Size) -> Instance:
    """
    Gangs of up to 32 workers over nodes and racks, with communication: some in one rack, split exactly, or kept apart.

    Nodes as in ``uniform``, in racks of 8; 20 % of the GPUs are busy. Workers have 1, half of a node's or all of a
    node's GPUs, each as likely. A gang of several workers is

    - ``free`` (40 %): anywhere;
    - ``one_rack`` (25 %): all workers in one rack;
    - ``two_racks`` (15 %): exactly half of the workers in each of two racks;
    - ``spread`` (20 %): at most one worker a node.

    Conditions that this cluster could never meet, even empty, are dropped (``two_racks`` with one rack, ``spread`` with
    fewer nodes than workers, ``one_rack`` for more GPUs than a full rack has), and a job that requests more GPUs than
    the cluster has becomes one of a single worker. Profiles and communication weights as in ``uniform``.
    """

    def draw(rng: np.random.Generator, num_jobs: int) -> Columns:
        workers = rng.choice(list(WORKERS), num_jobs, p=list(WORKERS.values()))
        gpus = rng.choice([1, max(size.gpus // 2, 1), size.gpus], num_jobs)
        workers = np.where(workers * gpus > size.num_gpus, 1, workers)
        condition = rng.choice(list(CONDITIONS), num_jobs, p=list(CONDITIONS.values())).tolist()
        columns = in_proportion(workers=workers, gpus=gpus)
        lies = [_lie(size, *job) for job in zip(condition, columns["workers"], columns["gpus"], strict=True)]
        columns["splits"] = [splits for splits, _ in lies]
        columns["workers_per_node_max"] = [most for _, most in lies]
        return columns | draw_profiles(rng, (workers * gpus).tolist()) | worth(rng, 1000 * workers * gpus)

    machine = two_socket_machine("gangs", size.gpus)
    return assemble(
        "gangs",
        size,
        machine,
        draw,
        slowdowns=slowdowns(),
        busy_share=GANGS_BUSY_SHARE,
        nodes_per_rack=GANGS_PER_RACK,
    )


def _lie(size: Size, condition: str, workers: int, gpus: int) -> tuple[tuple[Split, ...], int | None]:
    """Return splits and workers per node of a job, as far as the empty cluster could satisfy them."""
    first = min(size.nodes, GANGS_PER_RACK)  # nodes of the two largest racks
    second = min(size.nodes - first, GANGS_PER_RACK)
    per_node = size.gpus // gpus
    if workers == 1:
        return (), None
    if condition == "one_rack" and first * per_node >= workers:
        return _ONE_RACK, None
    if condition == "two_racks" and second * per_node >= workers // 2:
        return _TWO_RACKS[workers], None
    return (), 1 if condition == "spread" and workers <= size.nodes else None


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
    machine, share = two_socket_machine(spec, size.gpus), CHANGING_BUSY_SHARE[spec]
    made = assemble(spec, size, machine, draw, draw_running=draw_running, policy=policy, busy_share=share)
    return made.model_copy(update={"running": tuple(held.model_copy(update=flags) for held in made.running)})
