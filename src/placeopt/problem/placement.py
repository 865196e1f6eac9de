"""Where a job runs, in indices; and the allocation, which is a placement or none for every job."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Placement:
    """
    The option taken and where each worker is.

    ``nodes`` has one node a worker, in rank order; ``gpus`` the global GPU indices, worker after worker, as many a
    worker as the option says. ``shares`` has the thousandths held of each GPU, or is None where each is the request:
    only running jobs hold anything else. ``restarts`` marks the move of a running job to a part of its own GPUs, which
    could be taken for a shrink.
    """

    option: int
    nodes: tuple[int, ...]
    gpus: tuple[int, ...]
    shares: tuple[int, ...] | None = None
    restarts: bool = False


Allocation = tuple[Placement | None, ...]
"""One entry a job, in the order of ``Problem.job_ids``; None: the job waits, or is preempted."""
