"""Where a job runs, in indices; and the allocation, which is a placement or none for every job."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Placement:
    """
    The option taken and where each worker is.

    ``nodes`` has one node a worker, in rank order; ``gpus`` the global GPU indices, worker after worker, as many a
    worker as the option says. Of each GPU the job's request counts; what is granted above it is worked out where
    placements are written (``grants``). ``restarts`` marks the move of a running job to a part of its own GPUs, which
    could be taken for a shrink.
    """

    option: int
    nodes: tuple[int, ...]
    gpus: tuple[int, ...]
    restarts: bool = False


Allocation = tuple[Placement | None, ...]
"""One entry a job, in the order of ``Problem.job_ids``; None: the job waits, or is preempted."""
