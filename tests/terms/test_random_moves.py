"""Every cost's delta is recomputation, and undo is undo, on random moves; a new cost is found by the tuple."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from helpers.brute_force import Enumeration
from helpers.differential import Report, examine_moves
from placeopt.model import Instance
from placeopt.problem import compile_problem
from strategies import rounds


@given(round_=rounds(), seed=st.integers(0, 2**32 - 1))
def test_random_moves(round_: Instance, seed: int) -> None:
    """Search stages trust deltas blindly; the audit would call their plans wrong."""
    report, everything = Report(), Enumeration(compile_problem(round_))
    examine_moves(report, everything, everything.rows()[0], np.random.default_rng(seed), 20)
    assert report.mismatches == []
