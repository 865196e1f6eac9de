"""A signal to a solver's own process, or a clock that jumps, is no interruption of ours (issue 16, A5)."""

import os
import signal
import threading
from typing import Any
from unittest import mock

import numpy as np
import pytest

from helpers.processes import running_cbc, within
from helpers.solver_models import hard, knapsack
from placeopt import Engine, generate, violations
from placeopt.solvers import InProcess, Limit, Solution, SolveOptions, Worker, cbc, supervise
from placeopt.solvers.frames import Answer
from placeopt.solvers.reading import Reading

LONG = SolveOptions(60.0, hint=np.zeros(hard().num_variables, dtype=np.int64))


@pytest.mark.parametrize("runner", [Worker, InProcess])
def test_issue16_a5_sigint_to_cbc_is_a_failed_solve(runner: type[Worker] | type[InProcess]) -> None:
    """Issue 16, A5: CBC says "user ctrl-c"; nobody of ours asked for it, so another solver may try."""
    found: list[Solution] = []
    with runner() as at:
        at.start()
        solve = threading.Thread(target=lambda: found.append(at.solve("pulp-cbc", hard(), LONG, deadline=within(60))))
        solve.start()
        program = running_cbc(os.getpid() if isinstance(at, InProcess) else at.pid)
        while solve.is_alive():  # the first may come before its handler is there, and the second ends it at once
            os.kill(program, signal.SIGINT)
            solve.join(1.0)
    assert (found[0].limit, found[0].failed, found[0].status) == ("none", True, "feasible"), found[0]
    assert "CBC" in found[0].message


def test_issue16_a5_sigint_to_the_worker_is_ignored() -> None:
    """Issue 16, A5: relatives. The child of CP-SAT and HiGHS goes on to its time limit."""
    with Worker() as worker:
        worker.solve("cpsat", knapsack(), SolveOptions(20.0), deadline=within(20))
        for solver in ("cpsat", "highs"):
            timer = threading.Timer(0.2, os.kill, (worker.pid, signal.SIGINT))
            timer.start()
            solution = worker.solve(solver, hard(), SolveOptions(0.6), deadline=within(20))
            assert (solution.limit, solution.failed) == ("time", False)


@pytest.mark.parametrize(
    ("said", "seconds", "outside"),
    [
        ("Stopped on user ctrl-c", 9.9, True),
        ("User ctrl-c", 0.1, True),
        ("Stopped on time limit", 0.1, True),  # the clock of the machine was set forward
        ("Stopped on time limit", 9.0, False),
        ("Stopped on node limit", 0.1, False),
        ("Optimal solution found", 0.1, False),
    ],
)
def test_issue16_a5_status_of_cbc_against_our_clock(said: str, seconds: float, outside: bool) -> None:
    """Issue 16, A5: a limit of 10 s that CBC sees after 0.1 s of ours is not the one that it was given."""
    log = cbc._Log(Reading(knapsack(), SolveOptions(10.0), None), SolveOptions(10.0))
    log.take(f"Result - {said}\n".encode())
    assert log.is_outside(seconds, 10.0) is outside


class Silent:
    """A link to a solve that answers at once, whatever is asked."""

    def __init__(self, solution: Solution) -> None:
        import queue

        self.inbox: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.inbox.put(Answer(1, solution))

    def stop(self, number: int) -> None:
        """Nothing to stop."""


@pytest.mark.parametrize(("asked", "limit", "failed"), [(None, "none", True), (lambda: True, "user", False)])
def test_issue16_a5_limit_user_only_after_our_cancellation(asked: Any, limit: Limit, failed: bool) -> None:
    """Issue 16, A5: the same answer of any solver, with and without a cancellation of ours."""
    solution = Solution("no_solution", "user", bound=500, message="")
    run = supervise.Supervision(1, knapsack(), SolveOptions(9.0), deadline=within(9), on_progress=None, cancel=asked)
    found, answered = run.run(Silent(solution))
    assert (found.limit, found.failed, answered) == (limit, failed, True)
    assert found.bound == 500


def test_issue16_a5_a_round_goes_on_without_the_solver() -> None:
    """Issue 16, A5: the round ends with its plan; it raised ``Interrupted``, and no key was pressed."""

    def interrupted(model: Any, options: SolveOptions, *_: Any) -> Solution:
        return Solution("no_solution", "user", bound=10**9)

    round_ = generate("varied", jobs=12, nodes=3, gpus=4, seed=1)
    with mock.patch("placeopt.solvers.frames.load", return_value=interrupted), Engine(isolation="thread") as engine:
        plan = engine.solve(round_, method="counts-cbc", time_limit_s=20)
    assert plan.limit != "user"
    assert violations(round_, plan) == []
    assert any("stopped from outside" in stage.detail for stage in plan.stages), plan.stages
