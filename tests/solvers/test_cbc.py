"""CBC: what other ways of calling it get wrong, and that nothing outlives us."""

import contextlib
import os
import signal
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from helpers.processes import alive, children, eventually, running_cbc, solving, within
from helpers.solver_models import cbc_trap, hard, knapsack, model
from placeopt import BadInput, Unsupported
from placeopt.linear import NO_LOWER, ModelBuilder
from placeopt.solvers import Solution, SolveOptions, Worker, load

pytestmark = pytest.mark.usefixtures("own_processes")
LONG = SolveOptions(60.0)
NOTHING = np.zeros(hard().num_variables, dtype=np.int64)
"""A hint for `hard`: all that CBC has if it is cut in its root node."""
SOLUTION = """Optimal - objective value -220.00000000
      0 C0000000               5                      40
      0 X0000000  -3.3306691e-16                       0
**    1 X0000001      0.99999999                       0
      2 X0000002               1                       0
"""
LOG = """Result - Optimal solution found

Objective value:                -220.00000000
"""
"""What CBC writes and says of `knapsack`, as a minimum without its constant."""


@pytest.fixture
def by_cbc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Solution]:
    """Solve the knapsack by a program that writes a text as its solution file, and prints another."""
    program, text, log = tmp_path / "cbc", tmp_path / "text", tmp_path / "log"
    program.write_text(f'#!/bin/sh\nfor last; do :; done\ncat {text} > "$last"\ncat {log}\n')
    program.chmod(0o700)
    monkeypatch.setattr("placeopt.solvers.cbc.cbc_program", lambda: str(program))

    def solved(written: str, said: str = LOG, options: SolveOptions = LONG) -> Solution:
        text.write_text(written)
        log.write_text(said)
        return load("pulp-cbc")(knapsack(), options)

    return solved


def test_no_part_of_a_solution_file_is_an_optimum(by_cbc: Callable[..., Solution]) -> None:
    """PuLP reads one that was cut short as a complete optimum, with 0 for what is missing (trap 3)."""
    whole = by_cbc(SOLUTION)
    assert (whole.status, whole.values.tolist()) == ("optimal", [0, 1, 1])  # rounded; stars mark a doubt of CBC's
    assert by_cbc(SOLUTION, LOG.replace("-220", "-221")).status == "feasible", "of other values than these"
    assert by_cbc(SOLUTION, "").status == "feasible", "without a bound"
    for length in range(0, SOLUTION.index("X0000002"), 9):
        part = by_cbc(SOLUTION[:length])
        assert part.status in ("error", "feasible")
        assert part.values is None or part.objective < 227, "a part that keeps the model is a solution and no more"


@pytest.mark.parametrize(
    ("status", "result", "claim"),
    [("Stopped on time", "Stopped on time limit", "feasible"),
     ("Stopped on iterations", "Stopped on node limit", "feasible"),
     ("Stopped on time (no integer solution - continuous used)", "Stopped on time limit", "no_solution"),
     ("Optimal (within gap tolerance)", "Optimal solution found (within gap tolerance)", "feasible"),
     ("Integer infeasible", "Problem proven infeasible", "infeasible"),
     ("Infeasible", "Linear relaxation infeasible", "infeasible"),
     ("Unbounded", "Linear relaxation unbounded", "error")],
)  # fmt: skip
def test_statuses_of_solution_files(status: str, result: str, claim: str, by_cbc: Callable[..., Solution]) -> None:
    """Without a solution CBC leaves the fractional values of the relaxation in the file (trap 3)."""
    first = "-3.3306691e-16" if claim == "feasible" else "0.66666667"
    said = LOG.replace("Optimal solution found", result) + "Lower bound:   -230.500\n"
    found = by_cbc(SOLUTION.replace("Optimal", status).replace("-3.3306691e-16", first), said, SolveOptions(1e-3))
    assert found.status == claim
    assert (found.values is not None) == (claim == "feasible")
    assert found.bound == {"feasible": 237, "no_solution": 237, "infeasible": None, "error": 287}[claim]


def test_a_clock_that_jumps_is_an_error(by_cbc: Callable[..., Solution]) -> None:
    """CBC takes the time of day: where that jumps ahead, it stops at once; what it has found is kept."""
    said = LOG.replace("Optimal solution found", "Stopped on time limit")
    found = by_cbc(SOLUTION.replace("Optimal", "Stopped on time"), said)
    assert (found.status, found.objective, found.failed) == ("feasible", 227, True)
    assert "clock" in found.message


def test_crash_without_a_word_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever dies without a solution file has proven nothing."""
    monkeypatch.setattr("placeopt.solvers.cbc.cbc_program", lambda: "/bin/false")
    solution = load("pulp-cbc")(knapsack(), LONG)
    assert (solution.status, solution.values) == ("error", None)
    assert "CBC died" in solution.message


def test_preprocessing_stays_off() -> None:
    """Nor by an abbreviation; the model that CBC gets wrong with it is solved without."""
    assert load("pulp-cbc")(cbc_trap(), LONG).objective == 64
    for name in ("preprocess", "prepro", "-preprocess"):
        with pytest.raises(BadInput, match="preprocess"):
            load("pulp-cbc")(cbc_trap(), SolveOptions(9.0, extra=((name, "on"),)))


@pytest.mark.parametrize("extra", [("ratioGap", "abc"), ("maxNodes", "1.5"), ("cuts", "maybe"), ("r", "1"),
                                   ("integerTolerance", "-1")])  # fmt: skip
def test_option_values_that_cbc_ignores(extra: tuple[str, str]) -> None:
    """It says so in its log and goes on with its defaults; we do not."""
    with pytest.raises(BadInput, match=extra[0]):
        load("pulp-cbc")(knapsack(), SolveOptions(9.0, extra=(extra,)))


def test_options_reach_cbc() -> None:
    """One node, in its own words."""
    solution = load("pulp-cbc")(hard(columns=60, rows=10), SolveOptions(20.0, extra=(("maxNodes", "1"),)))
    assert (solution.status, solution.limit) == ("feasible", "work")


def test_values_that_would_lose_digits() -> None:
    """CBC writes eight of them: refused, with those who write all."""
    with pytest.raises(Unsupported, match="highs"):
        load("pulp-cbc")(model("max", [1, 1], ([1, 1], NO_LOWER, 123_456_789), high=10**9), LONG)


def descendant_cbc(before: set[int] = frozenset()) -> int:
    """Wait until a child of this process that was not there ``before`` runs CBC, and return CBC's process id."""
    new: list[int] = []

    def started() -> bool:
        new[:] = set(children(os.getpid())) - before
        return bool(new)

    assert eventually(started)
    return running_cbc(new[0])


@pytest.mark.parametrize("isolation", ["process", "thread"])
def test_sigint_to_cbc_is_a_failed_solve(isolation: str) -> None:
    """CBC says "user ctrl-c"; nobody of ours asked for it, so another solver may try."""
    found: list[Solution] = []
    options, before = replace(LONG, hint=NOTHING), set(children(os.getpid()))
    with Worker(isolation=isolation) as at:
        solve = threading.Thread(
            target=lambda: found.append(at.solve("pulp-cbc", hard(), options, deadline=within(60)))
        )
        solve.start()
        program = descendant_cbc(before)
        while solve.is_alive():  # the first may come before its handler is there
            with contextlib.suppress(ProcessLookupError):  # it has ended, and its answer is on the way
                os.kill(program, signal.SIGINT)
            solve.join(1.0)
    assert (found[0].limit, found[0].failed, found[0].status) == ("none", True, "feasible"), found[0]
    assert "stopped from outside" in found[0].message


@pytest.mark.parametrize("how", ["worker", "group", "deadline", "close"])
def test_cbc_dies_with_the_worker(how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed alone, by group, at the deadline or closed: no process is left, and no file (trap 13)."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    with Worker() as worker:
        solve = threading.Thread(
            target=lambda: worker.solve("pulp-cbc", hard(), LONG, deadline=within(2.0 if how == "deadline" else 30.0))
        )
        solve.start()
        assert eventually(lambda: worker.pid is not None)
        program = running_cbc(worker.pid)
        if how == "worker":
            os.kill(worker.pid, signal.SIGKILL)
        elif how == "group":
            os.killpg(worker.pid, signal.SIGKILL)
        elif how == "close":
            worker.close()
        solve.join()
        assert eventually(lambda: not alive(program))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("isolation", ["process", "thread"])
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])  # nobody handles SIGTERM, which is as a kill
def test_cbc_dies_with_the_host(how: signal.Signals, isolation: str, tmp_path: Path) -> None:
    """Without the host having a chance to tidy up, and whatever runner it has."""
    with solving("pulp-cbc", isolation, TMPDIR=str(tmp_path)) as host:
        host.stdout.readline()
        assert eventually(lambda: bool(children(host.pid)), 10.0)
        worker = children(host.pid)[0]
        program = running_cbc(worker)
        host.send_signal(how)
        assert eventually(lambda: not alive(program) and not alive(worker))
        host.wait(timeout=5)
    assert list(tmp_path.iterdir()) == []


def test_memory_limit() -> None:
    """It holds for the program, which is a process of its own; the failure is an answer."""
    n = 150_000
    builder = ModelBuilder()
    x = builder.add_variables(0, 1, count=n)
    builder.add_rows(np.arange(n) // 10, x, 1, np.zeros(n // 10, dtype=np.int64), 3)
    builder.set_objective(x, np.arange(n) % 17, "max")
    with Worker() as worker:
        options = SolveOptions(600.0, memory_limit_mib=1)
        solution = worker.solve("pulp-cbc", builder.build(), options, deadline=within(60))
    assert (solution.status, solution.limit) == ("error", "memory"), solution
