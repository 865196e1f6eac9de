"""Jobs of queues in plans; the first sign of a job's name is that of its queue."""

from placeopt import Instance, solve, violations


def placed(round_: Instance) -> dict[str, int]:
    """Return how many jobs of each queue run in the proven optimum."""
    plan = solve(round_, time_limit_s=20, isolation="thread")
    assert plan.status == "optimal"
    assert violations(round_, plan) == []
    found: dict[str, int] = {}
    for one in plan.placements:
        found[one.job[0]] = found.get(one.job[0], 0) + 1
    return found
