"""An allocation as arrays: who holds which GPU, and whose workers are on which node."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain

import numpy as np

from placeopt.problem.arrays import IntArray
from placeopt.problem.placement import Placement
from placeopt.problem.problem import Problem


@dataclass(frozen=True, eq=False)
class Holdings:
    """H grants, one a job and GPU, and W workers, in the order of the jobs given and of their ranks."""

    job: IntArray  # (H,)
    gpu: IntArray  # (H,)
    option: IntArray  # (H,) the job's
    milli: IntArray  # (H,) thousandths requested
    worker_node: IntArray  # (W,)
    worker_option: IntArray  # (W,) the job's


def holdings(problem: Problem, placed: Iterable[tuple[int, Placement]]) -> Holdings:
    """Write (job, placement) pairs, of different jobs, as arrays."""
    pairs = list(placed)
    option = np.array([p.option for _, p in pairs], dtype=np.int64)
    gpus = np.array([len(p.gpus) for _, p in pairs], dtype=np.int64)
    workers = np.array([len(p.nodes) for _, p in pairs], dtype=np.int64)
    of_grant = np.repeat(option, gpus)
    return Holdings(
        job=np.repeat(np.array([job for job, _ in pairs], dtype=np.int64), gpus),
        gpu=np.fromiter(chain.from_iterable(p.gpus for _, p in pairs), dtype=np.int64, count=int(gpus.sum())),
        option=of_grant,
        milli=problem.options.milli[of_grant],
        worker_node=np.fromiter(chain.from_iterable(p.nodes for _, p in pairs), np.int64, count=int(workers.sum())),
        worker_option=np.repeat(option, workers),
    )
