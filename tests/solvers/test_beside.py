"""A solve that goes on while its caller works: it is waited for, dropped, or its error raised."""

import time

import pytest

from helpers.solver_models import hard, knapsack
from placeopt import Unsupported
from placeopt.solvers import Beside, Progress, Solution, SolveOptions, Worker

AN_HOUR_S = 3600.0


def test_it_is_waited_for() -> None:
    """The second time costs nothing."""
    with Worker() as worker:
        beside = Beside(worker, "highs", knapsack(), SolveOptions(60.0), deadline=time.monotonic() + AN_HOUR_S)
        solution = beside.wait(60.0)
        assert isinstance(solution, Solution)
        assert solution.objective == 227
        assert beside.wait(0.0) is solution


def test_one_that_is_dropped_leaves_its_runner_to_others() -> None:
    """Nothing else would end this one within the hour."""
    with Worker() as worker:
        options = SolveOptions(AN_HOUR_S)
        beside = Beside(worker, "highs", hard(), options, deadline=time.monotonic() + AN_HOUR_S)
        assert beside.wait(0.2) is None
        beside.drop()
        solution = worker.solve("highs", knapsack(), options, deadline=time.monotonic() + 60)
        assert solution.objective == 227
        ended = beside.wait(60.0)
        assert ended is not None
        assert isinstance(ended, Progress) or ended.limit == "user"  # it ends with the news before, if there were any


def test_the_caller_cancels_it() -> None:
    """As every other solve of a round."""
    with Worker() as worker:
        deadline = time.monotonic() + AN_HOUR_S
        beside = Beside(worker, "highs", hard(), SolveOptions(AN_HOUR_S), deadline=deadline, cancel=lambda: True)
        ended = beside.wait(60.0)
        assert isinstance(ended, Solution)
        assert ended.limit == "user"


def test_an_exception_is_raised_again_in_wait() -> None:
    """There is no such solver."""
    with Worker() as worker:
        beside = Beside(worker, "nobody", knapsack(), SolveOptions(1.0), deadline=time.monotonic() + 1.0)
        with pytest.raises(Unsupported, match="nobody"):
            beside.wait(60.0)
