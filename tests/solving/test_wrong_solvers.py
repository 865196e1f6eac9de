"""No solver is believed: a false, late or broken answer changes nothing but the record of its stage."""

import threading
from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any

import numpy as np
import pytest

from helpers.wrong_solver import installed
from placeopt import Engine, Plan, Policy, audit, read_instance, violations
from placeopt.build import instance, job
from placeopt.linear import LinearModel
from placeopt.model import Stage, Weights
from placeopt.solvers import Solution, SolveOptions

ROUND = instance(
    1,
    [job(name, gpus=2, value=i + 1) for i, name in enumerate("abcd")],
    policy=Policy(order="fcfs", weights=Weights(communication=0, interference=0, fragmentation=0)),
)
"""Four jobs of two GPUs worth 1, 2, 3, 4, and one node of four GPUs: the first two are worth 3, the best two 7."""

DIED = "the worker process ended with signal 9 (SIGKILL)"


def solved(
    answer: Callable[[LinearModel], Solution], method: str, *, deterministic: bool = False
) -> tuple[Plan, Stage]:
    """Solve by a method whose integer models are answered so; return the plan and its last stage."""

    def answered(model: LinearModel, _: SolveOptions) -> Solution:
        return answer(model)

    with installed(answered, "highs", "cpsat"), Engine(isolation="thread") as engine:
        plan = engine.solve(ROUND, method=method, time_limit_s=20, deterministic=deterministic)
    assert violations(ROUND, plan) == []
    assert audit(ROUND, plan) == []
    assert plan.levels[0].bound is not None
    assert plan.levels[0].objective == 3
    assert plan.levels[0].bound >= 7
    assert plan.status == "feasible"
    return plan, plan.stages[-1]


@pytest.mark.parametrize("method", ["counts", "counts-cpsat", "assignment"])
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Solution("infeasible", bound=0), "columns"),  # a round of optional jobs never is: the plan held stands
        (Solution("error", bound=10, message=DIED, failed=True), "signal 9"),
        (Solution("feasible", bound=10, message=DIED), "signal 9"),  # its hint was kept
        (Solution("no_solution", "user", bound=10), "stopped from outside"),  # nobody of ours asked for it
    ],
)
def test_the_plan_and_the_bound_of_the_others_stand(answer: Solution, words: str, method: str) -> None:
    plan, stage = solved(lambda _: answer, method)
    assert words in stage.detail
    assert plan.limit == "none"


def test_values_that_do_not_add_up_are_thrown_away() -> None:
    """With them goes the bound of the same answer."""
    _, stage = solved(
        lambda model: Solution("optimal", values=np.ones(model.num_variables, dtype=np.int64), objective=10, bound=4),
        "assignment",
    )
    assert stage.outcome == "failed"


def test_an_exception_of_a_solver_is_a_failed_solve() -> None:
    def broken(_: LinearModel) -> Solution:
        raise IndexError("index 4 is out of bounds")

    assert "IndexError: index 4 is out of bounds" in solved(broken, "counts")[1].detail


def test_a_clock_that_ends_a_solve_in_deterministic_mode_is_the_limit() -> None:
    """Work ends solves there; a plan in which the clock had a say need not be the same again."""
    plan, _ = solved(lambda _: Solution("no_solution", "time", bound=10), "counts-cpsat", deterministic=True)
    assert plan.limit == "time"


def test_a_failed_solve_is_named_whatever_later_slices_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """The second relaxation is that of the fillings, whose record later slices write again."""
    solves = count()

    def solve(inner: Callable[..., Solution], solver: str, model: LinearModel, options: SolveOptions, **kw: Any) -> Any:
        if options.relax and next(solves) == 1:
            return Solution("error", message=DIED, failed=True)
        return inner(solver, model, options, **kw)

    with Engine(isolation="thread") as engine:
        runner = engine._solver._runners[0]
        monkeypatch.setattr(runner, "solve", partial(solve, runner.solve))
        plan = engine.solve(
            read_instance("instances/generated/varied-50x16x4-s1.json.gz"), time_limit_s=2, deterministic=True
        )
    assert DIED in next(stage.detail for stage in plan.stages if stage.name == "filling-costs")


class _Noticed(threading.Event):
    """An event that waits, once it is set, until somebody asks."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = threading.Event()

    def is_set(self) -> bool:
        if super().is_set():
            self.asked.set()
        return super().is_set()


def test_a_solve_that_the_user_ends_is_no_failure() -> None:
    """The command line warned of a stage that had failed, after Ctrl-C."""
    cancel = _Noticed()

    def answer(_: LinearModel, __: SolveOptions) -> Solution:
        cancel.set()
        cancel.asked.wait(60)
        return Solution("no_solution", "user")

    with installed(answer, "highs"), Engine(isolation="thread") as engine:
        plan = engine.solve(ROUND, method="fillings", time_limit_s=600, threads=1, cancel=cancel)
    assert plan.limit == "user"
    assert (plan.stages[-1].name, plan.stages[-1].outcome) == ("fillings", "kept")
