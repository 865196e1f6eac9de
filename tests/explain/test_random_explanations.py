"""Random small rounds: every statement of every explanation by brute force. ``tests/campaigns`` has more of them."""

from __future__ import annotations

import numpy as np
import pytest

from helpers.explanation_oracle import faults
from helpers.gang_rounds import gang_round
from helpers.small_rounds import Dice, random_round
from placeopt import solve
from placeopt.explain import explain

METHODS = ("stranding", "fcfs", "auto")


@pytest.mark.parametrize("seed", range(0, 60, 6))
def test_every_statement_by_brute_force(seed: int) -> None:
    """All waiting jobs, and one placed one a round."""
    for s in range(seed, seed + 6):
        rng = np.random.default_rng(s)
        round_ = random_round(rng, changes=s % 2 == 0, named=s % 3 == 2, standing=False)
        plan = solve(round_, method=METHODS[s % 3], isolation="thread")
        jobs = [unplaced.job for unplaced in plan.unplaced] + [p.job for p in plan.placements[:1]]
        for job in jobs:
            found = explain(round_, plan, job, time_limit_s=30, isolation="thread")
            assert not faults(round_, plan, found), (s, job, found)


@pytest.mark.parametrize("seed", range(0, 60, 10))
def test_gangs_among_racks_by_brute_force(seed: int) -> None:
    """Splits, narrow uplinks, shares and quotas at once."""
    for s in range(seed, seed + 10):
        round_ = gang_round(Dice(np.random.default_rng(s)))
        plan = solve(round_, method="stranding", isolation="thread")
        if plan.unplaced:
            found = explain(round_, plan, "j", time_limit_s=30, isolation="thread")
            assert not faults(round_, plan, found), (s, found)
