"""Rounds solved for what a test looks at."""

from helpers.plans import NO_COSTS
from placeopt import Instance, Plan, solve, violations


def planned(round_: Instance) -> Plan:
    """Solve a round for its value alone; the plan is one that the referee accepts."""
    plan = solve(round_, policy=round_.policy.model_copy(update={"weights": NO_COSTS}), time_limit_s=20)
    assert violations(round_, plan) == []
    return plan
