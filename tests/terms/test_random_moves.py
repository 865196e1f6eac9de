"""Every cost's delta is recomputation, and undo is undo, on random moves; a new cost is found by the tuple."""

import numpy as np
import pytest

from helpers.brute_force import Enumeration
from helpers.differential import Report, examine_moves
from helpers.small_rounds import random_round
from placeopt.problem import compile_problem


@pytest.mark.parametrize("seed", range(0, 200, 20))
def test_500_random_moves(seed: int) -> None:
    """Search stages trust deltas blindly; the audit would call their plans wrong."""
    report = Report()
    for number in range(seed, seed + 20):
        rng = np.random.default_rng(20_000 + number)
        everything = Enumeration(compile_problem(random_round(rng)))
        examine_moves(report, everything, everything.rows()[0], rng, 4)
    assert report.mismatches == []
    assert report.moves >= 50
