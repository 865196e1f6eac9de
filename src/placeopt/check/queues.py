"""Does each queue hold no more than its part of the cluster?"""

from placeopt.check.case import CheckCase, PlacedJob
from placeopt.model import Assignment, Demand
from placeopt.model.policy import Queue

RESOURCES = ("gpu_milli", "cpu_millicores", "memory_mib")


def check_queues(case: CheckCase) -> None:
    """Quota plus borrowing, and dominant share plus borrowing, of every queue over all jobs placed."""
    if not case.policy.queues:
        return
    before = case.elsewhere.queues
    used = {queue.id: list(before.get(queue.id, (0, 0, 0))) for queue in case.policy.queues}
    for held in case.held:
        add_use(used, held, 1)
    for queue in case.policy.queues:
        _check_queue(case, queue, used[queue.id], case.directory.total)


def add_use(used: dict[str, list[int]], held: PlacedJob, sign: int) -> None:
    """Add (``sign`` 1) or take off (-1) what a job holds to what its queue does, if that is one of ``used``."""
    amounts = used.get(held.job.queue) if held.job.queue is not None else None
    if amounts is not None:
        for assignment in held.placement.assignments:
            for r, amount in enumerate(_amounts(assignment, held.option.demand)):
                amounts[r] += sign * amount


def _amounts(assignment: Assignment, demand: Demand) -> tuple[int, int, int]:
    """Of GPUs, requests count: what is granted above them is free for others."""
    return len(assignment.gpus) * demand.gpu_milli, assignment.cpu_millicores, assignment.memory_mib


def _holders(case: CheckCase, queue: Queue, r: int) -> list[str]:
    """Jobs of the queue that hold some of a resource."""
    return [
        held.job.id
        for held in case.held
        if held.job.queue == queue.id
        and any(_amounts(one, held.option.demand)[r] for one in held.placement.assignments)
    ]


def _check_queue(case: CheckCase, queue: Queue, used: list[int], total: list[int]) -> None:
    where = f"queue {queue.id!r}"
    for r, resource in enumerate(RESOURCES):
        quota: int | None = getattr(queue.quota, resource)
        borrow: int = getattr(queue.borrow, resource) or 0
        if quota is not None and used[r] > quota + borrow:
            what = f"{used[r]} {resource}, quota {quota} and {borrow} borrowed"
            case.add("queue_quota", where, what, by=_holders(case, queue, r))
        if queue.dominant_share_percent is not None:
            percent = queue.dominant_share_percent + queue.borrow_percent
            if used[r] * 100 > percent * total[r]:
                what = f"{used[r]} of {percent} % of the cluster's {total[r]} {resource}"
                case.add("queue_share", where, what, by=_holders(case, queue, r))
