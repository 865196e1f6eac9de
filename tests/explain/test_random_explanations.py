"""Random small rounds: every statement of every explanation by brute force. ``tests/campaigns`` has more of them."""

from __future__ import annotations

import numpy as np
import pytest
from verdicts import faults, with_flags

from placeopt import solve
from placeopt.explain import explain
from rounds import random_round

METHODS = ("stranding", "fcfs", "auto")


@pytest.mark.parametrize("seed", range(0, 60, 6))
def test_every_statement_by_brute_force(seed: int) -> None:
    """All waiting jobs, and one placed one a round."""
    for s in range(seed, seed + 6):
        rng = np.random.default_rng(s)
        round_ = with_flags(random_round(rng), rng)
        plan = solve(round_, method=METHODS[s % 3], isolation="thread")
        jobs = [unplaced.job for unplaced in plan.unplaced] + [p.job for p in plan.placements[:1]]
        for job in jobs:
            found = explain(round_, plan, job, time_limit_s=30, isolation="thread")
            assert not faults(round_, plan, found), (s, job, found)
