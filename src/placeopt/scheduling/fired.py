"""Which mechanisms of a policy acted in a round, and how often: counted from what the round was, and its plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from placeopt.model import Instance, Job, Placement, Plan
from placeopt.scheduling.placement_amounts import amounts_of, workers_of
from placeopt.scheduling.policy import Scheduling
from placeopt.solving.held_room import held_for

HELD_ROOM = "hold_after: held room"
WHOLE_GPU = 1000
"""GPU-milli of a GPU of one's own."""


def fired(scheduling: Scheduling, now: Instance, plan: Plan) -> Counter[str]:
    """
    Return how often each mechanism acted in a round.

    Parameters
    ----------
    scheduling
        The policy, as it is in this cluster.
    now
        The round, under the policy of rounds.
    plan
        What was decided.

    Returns
    -------
    Counter[str]
        By the field of the policy and its rule, then what happened: ``preempts inference: stopped``.
    """
    jobs = {job.id: job for job in now.jobs}
    ran = {held.job: held.placement for held in now.running}
    started = [placement for placement in plan.placements if placement.job not in ran]
    placed = {placement.job: placement for placement in plan.placements}
    shrunk = {change.job for change in plan.shrunk}
    grew = [change.job for change in plan.moved if workers_of(placed[change.job]) > workers_of(ran[change.job])]
    stops, sizes = _rules_of_changes(scheduling)
    counts = Counter(
        {
            f"method {scheduling.method}: placed": len(started),
            f"choice {scheduling.choice.rule}: settled": sum(len(jobs[one.job].options) > 1 for one in started),
            "gang: placed": sum(workers_of(placement) > 1 for placement in started),
            "share: placed": sum(_is_share(placement) for placement in started),
            f"{stops}: stopped": len(plan.preempted),
            f"{sizes}: shrank": len(shrunk),
            f"{sizes}: grew": len(grew),
            f"{sizes}: started smaller": sum(_is_smaller(jobs[one.job], one) for one in started),
            "changes: moved": len(plan.moved) - len(grew),
            HELD_ROOM: bool(held_for(now)),
            f"postpone {now.policy.postpone.rule}: waits": sum(one.reason == "postponed" for one in plan.unplaced),
            f"{_parts_of(scheduling)}: lent": _lent(now, jobs, started, plan.placements),
            **{f"cost {name}: counted": cost.raw > 0 for name, cost in plan.costs.items()},
        }
    )
    return Counter({what: int(number) for what, number in counts.items() if number})


def _rules_of_changes(scheduling: Scheduling) -> tuple[str, str]:
    """Return what stops running jobs, and what resizes them."""
    if scheduling.rounds == "whole":
        return "changes", "changes"
    stops = f"preempts {scheduling.preempts.rule}" if scheduling.watch is None else f"watch {scheduling.watch.rule}"
    return stops, f"elastic {scheduling.elastic.rule}"


def _parts_of(scheduling: Scheduling) -> str:
    return "policy.queues" if scheduling.divides is None else f"divides {scheduling.divides.rule}"


def _is_share(placement: Placement) -> bool:
    return any(milli < WHOLE_GPU for assignment in placement.assignments for milli in assignment.gpus.values())


def _is_smaller(job: Job, placement: Placement) -> bool:
    option = job.option(placement.option)
    return option.workers_min is not None and workers_of(placement) < option.workers


def _lent(now: Instance, jobs: dict[str, Job], started: Iterable[Placement], placed: Iterable[Placement]) -> int:
    """Return how many jobs start in a queue that holds more than its quota then."""
    held: dict[str | None, list[int]] = {}
    for placement in placed:
        mine = held.setdefault(jobs[placement.job].queue, [0, 0, 0])
        for kind, amount in enumerate(amounts_of(placement)):
            mine[kind] += amount
    over = set()
    for queue in now.policy.queues:
        quota = queue.quota.gpu_milli, queue.quota.cpu_millicores, queue.quota.memory_mib
        mine = held.get(queue.id, [0, 0, 0])
        if any(most is not None and amount > most for amount, most in zip(mine, quota, strict=True)):
            over.add(queue.id)
    return sum(jobs[placement.job].queue in over for placement in started)
