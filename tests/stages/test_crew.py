"""A round hears from its solvers what concerns all of its stages."""

import time
from typing import Any

from builders import instance, job
from placeopt.linear import LinearModel, ModelBuilder
from placeopt.problem import compile_problem
from placeopt.solvers.inprocess import InProcess
from placeopt.solvers.result import Solution, SolveOptions
from placeopt.stages.crew import Crew
from placeopt.stages.limits import Limits
from placeopt.stages.round import Round


class Interrupted(InProcess):
    """A runner to which Ctrl-C comes at every solve."""

    def solve(self, *_: Any, **__: Any) -> Solution:
        """Answer as a worker does then."""
        return Solution("no_solution", limit="user", message="interrupted")


def model() -> LinearModel:
    """One variable."""
    builder = ModelBuilder()
    builder.add_variables(0, 1, 1)
    return builder.build()


def test_ctrl_c_in_any_solve_stops_the_round() -> None:
    """Also in a relaxation, whose stage asks only for bounds and duals."""
    now, of = time.monotonic(), instance(1, [job("a")])
    round_ = Round(of, compile_problem(of), Limits(started=now, deadline=now + 60, time_limit_s=60))
    assert not round_.stopped()
    Crew(round_, [Interrupted(), Interrupted()]).solve("highs", model(), SolveOptions(1.0, relax=True))
    assert round_.stopped()
    assert round_.limit == "user"
