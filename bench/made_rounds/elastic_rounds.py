"""The spec ``elastic``: jobs that run with several numbers of GPUs, and gain less by each more."""

import numpy as np

from placeopt.generators.shared import (
    JOB_CPU_MILLICORES_PER_GPU,
    JOB_MEMORY_MIB_PER_GPU,
    PRIORITY_FACTORS,
    Columns,
    Size,
    assemble,
    two_socket_machine,
    worth,
)
from placeopt.model import Demand, Instance, Option

MOST_GPUS = 8
SYNCHRONISATION = (0.02, 0.1, 0.4)
"""c of the speed-up k / (1 + c (k - 1)) on k GPUs, each as likely; ours."""
HOURS = (0.2, 1.0, 5.0)
"""Run times on one GPU, each as likely; ours."""
ELASTIC_SHARE = 0.5
"""Part of the jobs that state numbers of workers instead of options; ours."""
_HOUR_MS = 3_600_000


def elastic(size: Size) -> Instance:
    """
    Options and elastic jobs: each more GPU is worth less, so how many each gets decides how many jobs run.

    Nodes as in ``uniform``, all idle. A job runs on 1, 2, 4 or 8 GPUs of one node, as far as a node has them, with the
    speed-up k / (1 + c (k - 1)), c = 0.02, 0.1 or 0.4, and is worth 1000 x the speed-up x 1, 2 or 4 by priority class
    (``worth``). Half of the jobs state these as options, each with its run time (0.2, 1 or 5 h on one GPU); the others
    are elastic from 1 worker of one GPU to the most, worth 1000 at first and for each further worker the mean gain.
    """
    counts = [k for k in (1, 2, 4, MOST_GPUS) if k <= size.gpus]

    def draw(rng: np.random.Generator, num_jobs: int) -> Columns:
        of_class = worth(rng, np.full(num_jobs, 1000))
        drawn = zip(
            of_class["priority"],
            rng.choice(SYNCHRONISATION, num_jobs).tolist(),
            rng.choice(HOURS, num_jobs).tolist(),
            (rng.random(num_jobs) < ELASTIC_SHARE).tolist(),
            strict=True,
        )
        kinds: dict[tuple[int, float, float, bool], tuple[Option, ...]] = {}
        options = [kinds.setdefault(kind, _options(counts, *kind)) for kind in drawn]
        return {"options": options, "priority": of_class["priority"], "user": of_class["user"]}

    return assemble("elastic", size, two_socket_machine("elastic", size.gpus), draw, busy_share=None)


def _options(
    counts: list[int], priority: int, synchronisation: float, hours: float, is_elastic: bool
) -> tuple[Option, ...]:
    """Return the options of a job: one for each number of GPUs, or an elastic one."""
    factor, speed_up = PRIORITY_FACTORS[priority], [k / (1 + synchronisation * (k - 1)) for k in counts]
    if is_elastic and len(counts) > 1:
        gain = round(1000 * factor * (speed_up[-1] - 1) / (counts[-1] - 1))
        return (
            Option(
                workers=counts[-1],
                workers_min=1,
                single_node=True,
                demand=_demand(1),
                value=1000 * factor + (counts[-1] - 1) * gain,
                value_per_worker=gain,
                run_time_ms=round(hours * _HOUR_MS),
            ),
        )
    return tuple(
        Option(
            id=f"{k}gpu",
            demand=_demand(k),
            value=round(1000 * factor * times),
            run_time_ms=round(hours * _HOUR_MS / times),
        )
        for k, times in zip(counts, speed_up, strict=True)
    )


def _demand(gpus: int) -> Demand:
    return Demand(gpus=gpus, cpu_millicores=gpus * JOB_CPU_MILLICORES_PER_GPU, memory_mib=gpus * JOB_MEMORY_MIB_PER_GPU)
