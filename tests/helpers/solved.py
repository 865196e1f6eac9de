"""Rounds solved for what a test looks at."""

import threading
from collections.abc import Sequence

from helpers.plans import NO_COSTS
from placeopt import Instance, Plan, solve, violations


def planned(round_: Instance) -> Plan:
    """Solve a round for its value alone; the plan is one that the referee accepts."""
    plan = solve(round_, policy=round_.policy.model_copy(update={"weights": NO_COSTS}), time_limit_s=20)
    assert violations(round_, plan) == []
    return plan


def compare_methods(
    round_: Instance, best: int, methods: Sequence[str], *, exact: Sequence[str], time_limit_s: float = 20
) -> list[Plan]:
    """
    Return plans of all methods: lawful, worth ``best`` at most, bounded by no less, and proven by ``exact`` ones.

    No stage of any failed.
    """
    plans = []
    for method in methods:
        plan = solve(round_, method=method, time_limit_s=time_limit_s)
        value, *_ = plan.levels
        assert violations(round_, plan) == [], method
        assert [stage.detail for stage in plan.stages if stage.outcome == "failed"] == [], method
        assert value.objective <= best, method
        assert value.bound is None or value.bound >= best, method
        if method in exact:
            assert value.objective == value.bound == best, method
        plans.append(plan)
    return plans


def solve_until_worth(round_: Instance, worth: int) -> Plan:
    """Solve a round until a plan is worth so much, for a minute at most; it is."""
    cancel = threading.Event()
    plan = solve(
        round_,
        time_limit_s=60,
        isolation="thread",
        cancel=cancel,
        on_progress=lambda news: cancel.set() if (news.value or 0) >= worth else None,
    )
    assert plan.levels[0].objective >= worth
    return plan
