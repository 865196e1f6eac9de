"""SODA's allocator and profiles as they would be in the loop: trials of cores last and err, offline profiles err."""

from __future__ import annotations

import math
import random

from placeopt.simulation import Replica, Scenario
from placeopt.systems.soda.month import soda_month

TRIAL_MS = 60_000
"""Of a number of cores (VI-H)."""
TRIAL_NOISE_THOUSANDTHS = 20
"""Of the utilisation sampled in such a minute; not published, ours."""
PROFILE_NOISE = 0.1
"""Standard deviation of the logarithm of a profiled rate over the true one (V-D); not published, ours."""


def with_trials(scenario: Scenario, *, noise: bool = True) -> Scenario:
    """Return SODA's scenario with trials that last; with ``noise`` they err, and so do profiles of services."""
    dice = random.Random(scenario.name)
    physics = scenario.physics.model_copy(
        update={
            "core_trial_ms": TRIAL_MS,
            "core_trial_noise_thousandths": TRIAL_NOISE_THOUSANDTHS if noise else 0,
        }
    )

    def profiled(replica: Replica | None) -> Replica | None:
        if replica is None:
            return None
        rate = max(1, round(replica.rate_milli * math.exp(dice.gauss(0, PROFILE_NOISE))))
        return replica.model_copy(update={"profiled_rate_milli": rate})

    endpoints = scenario.endpoints
    if noise:
        endpoints = tuple(
            one.model_copy(update={"gpu": profiled(one.gpu), "cpu": profiled(one.cpu)}) for one in endpoints
        )
    return scenario.model_copy(update={"physics": physics, "endpoints": endpoints})


def trial_month(*, seed: int, nodes: int, days: int) -> Scenario:
    """Return SODA's month with trials and profiles that err."""
    return with_trials(soda_month(seed=seed, nodes=nodes, days=days))
