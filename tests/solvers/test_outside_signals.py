"""A signal to a solver's own process, or a clock that jumps, is no interruption of ours."""

import os
import signal
import threading

import numpy as np
import pytest

from helpers.processes import running_cbc, within
from helpers.solver_models import hard, knapsack
from placeopt.solvers import InProcess, Solution, SolveOptions, Worker

LONG = SolveOptions(60.0, hint=np.zeros(hard().num_variables, dtype=np.int64))


@pytest.mark.parametrize("runner", [Worker, InProcess])
def test_sigint_to_cbc_is_a_failed_solve(runner: type[Worker] | type[InProcess]) -> None:
    """CBC says "user ctrl-c"; nobody of ours asked for it, so another solver may try."""
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


def test_sigint_to_the_worker_is_ignored() -> None:
    """The child of CP-SAT and HiGHS goes on to its time limit."""
    with Worker() as worker:
        worker.solve("cpsat", knapsack(), SolveOptions(20.0), deadline=within(20))
        for solver in ("cpsat", "highs"):
            timer = threading.Timer(0.2, os.kill, (worker.pid, signal.SIGINT))
            timer.start()
            solution = worker.solve(solver, hard(), SolveOptions(0.6), deadline=within(20))
            assert (solution.limit, solution.failed) == ("time", False)
