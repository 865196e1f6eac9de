"""The spec ``gangs``: jobs over several nodes and racks, with constraints on their placements."""

import numpy as np

from placeopt.generators.busy import Columns
from placeopt.generators.job_kinds import slowdowns
from placeopt.generators.shared import (
    Size,
    assemble,
    draw_profiles,
    in_proportion,
    two_socket_machine,
    worth,
)
from placeopt.model import Instance, Split

GANGS_PER_RACK = 8
"""Small racks, so that gangs span several."""

GANGS_BUSY_SHARE = 0.2
WORKERS = {1: 0.3, 2: 0.2, 4: 0.2, 8: 0.15, 16: 0.1, 32: 0.05}
"""Shares of jobs by number of workers; ours."""

CONDITIONS = {"free": 0.4, "one_rack": 0.25, "two_racks": 0.15, "spread": 0.2}
"""Shares of the gangs by condition; ours."""

_ONE_RACK = (Split(level="rack", domains=1),)
_TWO_RACKS = {count: (Split(level="rack", domains=2, workers=count // 2),) for count in WORKERS if count > 1}


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
