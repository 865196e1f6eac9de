"""What placements hold, what clusters have, shares of GPUs, and placements with a worker more or fewer."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from placeopt.model import Assignment, Demand, Job, Option, Placement, WorkerGpus
from placeopt.model.policy import ShareMode
from placeopt.problem.grants import Bounds, bounds_of, granted, has_limit, with_shares

Amounts = tuple[int, int, int]
"""GPU-milli, CPU millicores, MiB of memory."""


def amounts_of(placement: Placement) -> Amounts:
    """Return what a placement holds."""
    return (
        gpu_milli_of(placement),
        sum(assignment.cpu_millicores for assignment in placement.assignments),
        sum(assignment.memory_mib for assignment in placement.assignments),
    )


def gpu_milli_of(placement: Placement) -> int:
    """Return the GPU-milli that a placement states; the simulation keeps placements with the requested shares."""
    return sum(sum(assignment.gpus.values()) for assignment in placement.assignments)


def requested_amounts(option: Option, workers: int) -> Amounts:
    """Return what a number of workers of an option request."""
    demand = option.demand
    gpu_milli = demand.gpus * demand.gpu_milli
    return workers * gpu_milli, workers * demand.cpu_millicores, workers * demand.memory_mib


def largest_share(held: Amounts, of: Iterable[int], *, of_nothing: float) -> float:
    """Return the largest quotient of what is held and ``of``; where ``of`` is 0, each amount counts ``of_nothing``."""
    return max(have / whole if whole else have * of_nothing for have, whole in zip(held, of, strict=True))


def workers_of(placement: Placement) -> int:
    """Return the number of workers that are placed."""
    return sum(len(assignment.workers) for assignment in placement.assignments)


def without_last_worker(placement: Placement, demand: Demand) -> Placement:
    """Return a placement without the worker of the highest rank; the others stay as they are."""
    last = max(worker.rank for assignment in placement.assignments for worker in assignment.workers)
    assignments = []
    for assignment in placement.assignments:
        kept = tuple(worker for worker in assignment.workers if worker.rank != last)
        if kept:
            shares = {str(gpu): assignment.gpus[str(gpu)] for worker in kept for gpu in worker.gpus}
            starts = {gpu: start for gpu, start in assignment.starts.items() if gpu in shares}
            assignments.append(_assignment(assignment.node, kept, shares, starts, demand))
    return placement.model_copy(update={"assignments": tuple(assignments)})


def with_added_worker(placement: Placement, demand: Demand, node: str, gpus: Mapping[int, int | None]) -> Placement:
    """Return a placement with one more worker, of the next rank, with the requested shares; ``gpus``: first slots."""
    added = WorkerGpus(rank=workers_of(placement), gpus=tuple(gpus))
    shares = {str(gpu): demand.gpu_milli for gpu in gpus}
    starts = {str(gpu): start for gpu, start in gpus.items() if start is not None}
    by_node = {assignment.node: assignment for assignment in placement.assignments}
    before = by_node.get(node)
    if before is None:
        by_node[node] = _assignment(node, (added,), shares, starts, demand)
    else:
        shares, starts = {**before.gpus, **shares}, {**before.starts, **starts}
        by_node[node] = _assignment(node, (*before.workers, added), shares, starts, demand)
    return placement.model_copy(update={"assignments": tuple(by_node.values())})


def with_cores_each(placement: Placement, millicores: int) -> Placement:
    """Return a placement in which each worker has so many thousandths of cores."""
    return placement.model_copy(
        update={
            "assignments": tuple(
                at.model_copy(update={"cpu_millicores": millicores * len(at.workers)}) for at in placement.assignments
            )
        }
    )


def with_cores(job: Job, option: str, millicores: int) -> Job:
    """Return a job each of whose workers asks for so many thousandths of cores in an option."""
    options = tuple(
        known.model_copy(update={"demand": known.demand.model_copy(update={"cpu_millicores": millicores})})
        if known.id == option and known.demand.cpu_millicores != millicores
        else known
        for known in job.options
    )
    return job if options == job.options else job.model_copy(update={"options": options})


def _assignment(
    node: str, workers: tuple[WorkerGpus, ...], shares: dict[str, int], starts: dict[str, int], demand: Demand
) -> Assignment:
    return Assignment(
        node=node,
        gpus=shares,
        starts=starts,
        cpu_millicores=len(workers) * demand.cpu_millicores,
        memory_mib=len(workers) * demand.memory_mib,
        workers=workers,
    )


class Shares:
    """
    Requests and limits of jobs under a share mode.

    What is granted above a request changes with every start and end on the GPU, so the simulation keeps requests and
    computes grants by the rule of rounds (`placeopt.problem.grants`) where they matter.
    """

    def __init__(self, mode: ShareMode, jobs: Iterable[Job] = ()) -> None:
        self._mode: ShareMode = mode
        self._jobs: dict[str, Job] = {}
        self._limited: set[str] = set()
        for job in jobs:
            self.learn(job)

    def learn(self, job: Job) -> None:
        """Take in one more job."""
        self._jobs[job.id] = job
        if has_limit(job):
            self._limited.add(job.id)

    @property
    def granting(self) -> bool:
        """Whether anything can be granted above a request."""
        return self._mode == "fraction" and bool(self._limited)

    def bounds(self, placement: Placement) -> Bounds:
        """Return request and limit of a placed job."""
        return bounds_of(placement, self._jobs, self._mode)

    def requested(self, placement: Placement) -> Placement:
        """Return a placement with the request as share of each GPU."""
        if placement.job not in self._limited:
            return placement
        request, _ = self.bounds(placement)
        return with_shares(placement, [dict.fromkeys(a.gpus, request) for a in placement.assignments])

    def granted(self, placements: Sequence[Placement], beside: Iterable[Placement] = ()) -> tuple[Placement, ...]:
        """Return placements with the shares granted to them beside others."""
        if not self.granting:
            return tuple(placements)
        return tuple(granted(placements, self._jobs, self._mode, beside))


def gpus_of(placement: Placement) -> list[tuple[str, str]]:
    """Return node and index of each GPU of a placement."""
    return [(assignment.node, gpu) for assignment in placement.assignments for gpu in assignment.gpus]
