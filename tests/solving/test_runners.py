"""A round hears from its solvers what concerns all of its stages."""

import time
from typing import Any

import pytest

from placeopt.build import instance, job
from placeopt.linear import LinearModel, ModelBuilder
from placeopt.problem import compile_problem
from placeopt.solvers import InProcess, Solution, SolveOptions
from placeopt.solving import SolveParams
from placeopt.solving.budget import Budget
from placeopt.solving.context import SolveContext
from placeopt.solving.runners import SolverRunners


class Interrupted(InProcess):
    """A runner to which Ctrl-C comes at every solve."""

    def solve(self, *_: Any, **__: Any) -> Solution:
        """Answer as a worker does then."""
        return Solution("no_solution", limit="user", message="interrupted")


class Late(InProcess):
    """A runner whose solves are all ended by the clock."""

    def solve(self, *_: Any, **__: Any) -> Solution:
        """Answer as a worker does then."""
        return Solution("no_solution", limit="time")


def model() -> LinearModel:
    """One variable."""
    builder = ModelBuilder()
    builder.add_variables(0, 1, 1)
    return builder.build()


def test_ctrl_c_in_any_solve_stops_the_round() -> None:
    """Also in a relaxation, whose stage asks only for bounds and duals."""
    now, of = time.monotonic(), instance(1, [job("a")])
    context = SolveContext(compile_problem(of), Budget(SolveParams(time_limit_s=60), started=now, deadline=now + 60))
    assert not context.budget.stopped()
    SolverRunners(context, [Interrupted(), Interrupted()]).solve("highs", model(), SolveOptions(1.0, relax=True))
    assert context.budget.stopped()
    assert context.budget.limit == "user"


@pytest.mark.parametrize(("deterministic", "limit"), [(True, "time"), (False, "none")])
def test_a_clock_limit_in_deterministic_mode_is_reported(deterministic: bool, limit: str) -> None:
    """Work ends solves there; a plan in which the clock had a say need not be the same again. Elsewhere stages tell."""
    now, of = time.monotonic(), instance(1, [job("a")])
    params = SolveParams(time_limit_s=60, deterministic=deterministic)
    context = SolveContext(compile_problem(of), Budget(params, started=now, deadline=now + 60))
    SolverRunners(context, [Late(), Late()]).solve("highs", model(), SolveOptions(1.0, relax=True))
    assert context.budget.limit == limit
