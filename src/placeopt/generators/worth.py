"""Value, user and arrival time of jobs."""

from typing import Any

import numpy as np
import numpy.typing as npt

PRIORITY_SHARES = (0.6, 0.3, 0.1)
"""Shares of the priority classes 0, 1 and 2; ours."""

PRIORITY_FACTORS = (1, 2, 4)
"""Value of a job: its GPU-milli x the factor of its class; ours."""

ARRIVAL_MEAN_MS = 6000
"""Poisson arrivals, 10 a minute (SC'17, section 5.3)."""

NUM_USERS = 50


def worth(rng: np.random.Generator, gpu_milli: npt.NDArray[np.int64]) -> dict[str, list[Any]]:
    """Draw columns ``priority``, ``value`` and ``user`` for jobs of ``gpu_milli`` GPU-milli each."""
    priority = rng.choice(len(PRIORITY_SHARES), gpu_milli.size, p=PRIORITY_SHARES)
    users = rng.integers(0, NUM_USERS, gpu_milli.size)
    return {
        "priority": priority.tolist(),
        "value": (gpu_milli * np.array(PRIORITY_FACTORS)[priority]).tolist(),
        "user": [f"user-{user:02d}" for user in users.tolist()],
    }


def arrivals(rng: np.random.Generator, num_jobs: int) -> list[int]:
    """Return arrival times in ms from the start of the round's history, ascending."""
    waits: list[int] = np.cumsum(rng.exponential(ARRIVAL_MEAN_MS, num_jobs)).astype(np.int64).tolist()
    return waits
