"""CBC: what other ways of calling it get wrong, and that nothing outlives us."""

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
from placeopt.solvers import InProcess, Progress, Solution, SolveOptions, Worker, load

pytestmark = pytest.mark.usefixtures("own_processes")
LONG = SolveOptions(60.0)
NOTHING = np.zeros(hard().num_variables, dtype=np.int64)
"""A hint for `hard`: all that CBC has if it is cut in its root node."""
SOLUTION = """Optimal - objective value -227.00000000
      0 r0                     5                      40
      0 c0        -3.3306691e-16                       0
**    1 c1            0.99999999                       0
      2 c2                     1                       0
"""


@pytest.fixture
def written_by_cbc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Solution]:
    """Solve the knapsack by a program that writes a text as its solution file, and says nothing."""
    program, text = tmp_path / "cbc", tmp_path / "text"
    program.write_text(f'#!/bin/sh\nfor last; do :; done\ncat {text} > "$last"\n')
    program.chmod(0o700)
    monkeypatch.setattr("placeopt.solvers.cbc.cbc_program", lambda: str(program))

    def solved(written: str) -> Solution:
        text.write_text(written)
        return load("pulp-cbc")(knapsack(), LONG)

    return solved


def test_no_part_of_a_solution_file_is_a_solution(written_by_cbc: Callable[[str], Solution]) -> None:
    """PuLP reads one that was cut short as a complete optimum, with 0 for what is missing (trap 3)."""
    whole = written_by_cbc(SOLUTION)
    assert (whole.status, whole.values.tolist()) == ("optimal", [0, 1, 1])  # rounded; stars mark a doubt of CBC's
    assert written_by_cbc(SOLUTION.replace("-227", "-220")).status == "feasible", "of other values than these"
    for length in range(0, len(SOLUTION), 9):
        assert written_by_cbc(SOLUTION[:length]).values is None


@pytest.mark.parametrize(
    ("status", "claim"),
    [("Stopped on time", "feasible"), ("Stopped on iterations", "feasible"),
     ("Stopped on time (no integer solution - continuous used)", "no_solution"),
     ("Optimal (within gap tolerance)", "feasible"), ("Integer infeasible", "infeasible"), ("Infeasible", "infeasible"),
     ("Unbounded", "error")],
)  # fmt: skip
def test_statuses_of_solution_files(status: str, claim: str, written_by_cbc: Callable[[str], Solution]) -> None:
    """Without a solution CBC leaves the fractional values of the relaxation in the file (trap 3)."""
    found = written_by_cbc(SOLUTION.replace("Optimal", status))
    assert found.status == claim
    assert (found.values is not None) == (claim in ("optimal", "feasible"))


def test_a_clock_that_jumps_is_an_error(written_by_cbc: Callable[[str], Solution], tmp_path: Path) -> None:
    """CBC takes the time of day: where that jumps ahead, it stops at once; what it has found is kept."""
    program = tmp_path / "cbc"
    program.write_text(program.read_text() + "echo 'Result - Stopped on time limit'\n")
    found = written_by_cbc(SOLUTION.replace("Optimal", "Stopped on time"))
    assert (found.status, found.objective, found.failed) == ("feasible", 227, True)
    assert "clock" in found.message


def test_crash_without_a_word_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever dies without a solution file has proven nothing."""
    monkeypatch.setattr("placeopt.solvers.cbc.cbc_program", lambda: "/bin/false")
    solution = load("pulp-cbc")(knapsack(), LONG)
    assert (solution.status, solution.values) == ("error", None)
    assert "exit code 1" in solution.message


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


def test_bounds_stream_while_cbc_runs() -> None:
    """So a kill keeps them, also where the solution is lost; they come line by line, not in blocks."""
    news, stop = [], threading.Event()

    def listen(item: Progress) -> None:
        news.append(item)
        if item.bound is not None and item.bound < hard().objective.sum():
            stop.set()  # it came while CBC was at work, and this ends it long before its limit

    solution = load("pulp-cbc")(hard(), SolveOptions(120.0), listen, stop)
    assert stop.is_set()
    assert solution.limit == "user"
    assert solution.bound <= news[-1].bound < hard().objective.sum()


def descendant_cbc(before: set[int] = frozenset()) -> int:
    """Wait until a child of this process that was not there ``before`` runs CBC, and return CBC's process id."""
    new: list[int] = []

    def started() -> bool:
        new[:] = set(children(os.getpid())) - before
        return bool(new)

    assert eventually(started)
    return running_cbc(new[0])


@pytest.mark.parametrize("make", [Worker, InProcess])
def test_sigint_to_cbc_is_a_failed_solve(make: type[Worker] | type[InProcess]) -> None:
    """CBC says "user ctrl-c"; nobody of ours asked for it, so another solver may try."""
    found: list[Solution] = []
    options, before = replace(LONG, hint=NOTHING), set(children(os.getpid()))
    with make() as at:
        solve = threading.Thread(
            target=lambda: found.append(at.solve("pulp-cbc", hard(), options, deadline=within(60)))
        )
        solve.start()
        program = descendant_cbc(before)
        while solve.is_alive():  # the first may come before its handler is there
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


@pytest.mark.parametrize("isolation", ["Worker", "InProcess"])
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
