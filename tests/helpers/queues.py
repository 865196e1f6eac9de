"""Jobs of queues in plans; the first sign of a job's name is that of its queue."""

from helpers.solved import planned
from placeopt import Instance


def placed(round_: Instance) -> dict[str, int]:
    """Return how many jobs of each queue run in the proven optimum."""
    plan = planned(round_)
    assert plan.status == "optimal"
    found: dict[str, int] = {}
    for one in plan.placements:
        found[one.job[0]] = found.get(one.job[0], 0) + 1
    return found
