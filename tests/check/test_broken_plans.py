"""The referee refuses plans broken in each of 75 ways; the campaign as a script does the same thousands of times."""

import random

from campaigns.broken_plans import WAYS, run
from campaigns.random_rounds import random_round
from placeopt.check import violations


def test_every_way_to_break_a_plan_is_refused_by_its_rule() -> None:
    """Each way at least once, and each limit from both sides."""
    done, wrong = run(300)
    assert wrong == []
    assert set(done) == set(WAYS)
    assert len(WAYS) >= 70


def test_valid_random_plans_are_valid() -> None:
    """Plans made by another count of the same loads: the two agree on what fits."""
    placed = 0
    for seed in range(1000, 1050):
        round_, plan = random_round(random.Random(seed))
        assert violations(round_, plan) == []
        placed += len(plan.placements)
    assert placed > 500
