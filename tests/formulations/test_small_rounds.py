"""A slice of the campaign of small rounds: brute force, every formulation and solver, both levels, the referee."""

import numpy as np
import pytest

from helpers.differential import ROUTES, examine
from helpers.small_rounds import random_round

QUICK = tuple(route for route in ROUTES if route.solver != "pulp-cbc")
CBC_EVERY = 5
"""A call of a program costs ten of a library; the campaign asks CBC about every round."""


@pytest.mark.parametrize("seed", range(0, 150, 30))
def test_all_routes_agree(seed: int) -> None:
    """Each route is written once and trusted by the engine; disagreement is the only sign that one of them errs."""
    assert _mismatches(seed, changes=False) == []


@pytest.mark.parametrize("seed", range(200_000, 200_150, 30))
def test_all_routes_agree_on_changes_to_running_jobs(seed: int) -> None:
    """Keep, shrink, move, preempt: what each may be is enumerated from the records, and so are prices and limits."""
    assert _mismatches(seed, changes=True) == []


def _mismatches(seed: int, *, changes: bool) -> list[str]:
    mismatches = []
    for number in range(seed, seed + 15):
        rng = np.random.default_rng(number)
        routes = ROUTES if number % CBC_EVERY == 0 else QUICK
        report = examine(random_round(rng, changes=changes, named=number % 3 == 2), rng, routes=routes, moves=1)
        mismatches += [f"seed {number}: {text}" for text in report.mismatches]
    return mismatches
