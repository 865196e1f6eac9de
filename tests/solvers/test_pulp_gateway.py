"""Solvers through PuLP: what its own way of calling them gets wrong, and that nothing outlives us."""

import os
import signal
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from helpers.processes import alive, children, eventually, running_cbc, solving, within
from helpers.solver_models import KNOWN, cbc_trap, hard, infeasible, knapsack, model
from placeopt import BadInput, Unsupported
from placeopt.linear import NO_LOWER, ModelBuilder
from placeopt.solvers import SOLVERS, InProcess, Progress, Solution, Solve, SolveOptions, Worker, load

LONG = SolveOptions(60.0)
NOTHING = np.zeros(hard().num_variables, dtype=np.int64)
"""A hint for `hard`: all that CBC has if it is cut in its root node."""
SOLUTION = """Optimal - objective value -227.00000000
      0 r0                     5                      40
      0 x0        -3.3306691e-16                       0
**    1 x1            0.99999999                       0
      2 x2                     1                       0
"""


@pytest.fixture
def written_by_cbc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Solution]:
    """Solve the knapsack by a program that writes a text as its solution file, and says nothing."""
    program, text = tmp_path / "cbc", tmp_path / "text"
    program.write_text(f'#!/bin/sh\nfor last; do :; done\ncat {text} > "$last"\n')
    program.chmod(0o700)
    monkeypatch.setattr("placeopt.solvers.pulp_gateway.cbc_program", lambda: str(program))

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


def test_crash_without_a_word_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever dies without a solution file has proven nothing."""
    monkeypatch.setattr("placeopt.solvers.pulp_gateway.cbc_program", lambda: "/bin/false")
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


@pytest.mark.parametrize("make", [Worker, InProcess])
def test_sigint_to_cbc_is_a_failed_solve(make: type[Worker] | type[InProcess]) -> None:
    """CBC says "user ctrl-c"; nobody of ours asked for it, so another solver may try."""
    found: list[Solution] = []
    options = replace(LONG, hint=NOTHING)
    with make() as at:
        at.start()
        solve = threading.Thread(
            target=lambda: found.append(at.solve("pulp-cbc", hard(), options, deadline=within(60)))
        )
        solve.start()
        program = running_cbc(os.getpid() if isinstance(at, InProcess) else at.pid)
        while solve.is_alive():  # the first may come before its handler is there, and the second ends it at once
            os.kill(program, signal.SIGINT)
            solve.join(1.0)
    assert (found[0].limit, found[0].failed, found[0].status) == ("none", True, "feasible"), found[0]
    assert "CBC" in found[0].message


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
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_cbc_dies_with_the_host(how: signal.Signals, isolation: str, tmp_path: Path) -> None:
    """Without the host having a chance to tidy up, and whether a worker stands in between or not."""
    with solving("pulp-cbc", isolation, TMPDIR=str(tmp_path)) as host:
        worker = int(host.stdout.readline())
        program = running_cbc(worker or host.pid)
        host.send_signal(how)
        assert eventually(lambda: not alive(program))
        host.wait(timeout=5)
    assert list(tmp_path.iterdir()) == []


def test_memory_limit() -> None:
    """It holds for the program, which is a process of its own; the failure is an answer."""
    n = 150_000
    builder = ModelBuilder()
    x = builder.add_variables(0, 1, count=n)
    builder.add_rows(np.arange(n) // 10, x, 1, np.zeros(n // 10, dtype=np.int64), 3)
    builder.set_objective(x, np.arange(n) % 17, "max")
    solution = load("pulp-cbc")(builder.build(), SolveOptions(600.0, memory_limit_mib=1))
    assert (solution.status, solution.limit) == ("error", "memory"), solution


HIGHS_IN_ITS_PLACE = """
from placeopt.solvers import pulp_child
arguments = {arguments}
bound = {bound}
pulp_child.INTERFACES = {{"scip": pulp_child.Interface("HiGHS", lambda options: arguments, bound)}}
pulp_child.main()
"""


@pytest.fixture
def through_package(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Solve]:
    """The way of all solvers but CBC, with the one package that is always there at its end."""
    entry = replace(SOLVERS["pulp-scip"], package="highspy")
    monkeypatch.setattr("placeopt.solvers.registry.SOLVERS", {**SOLVERS, "pulp-scip": entry})

    def made(arguments: str = "{}", bound: str = "lambda m: m.getInfo().mip_dual_bound", code: str = "") -> Solve:
        code = code or HIGHS_IN_ITS_PLACE.format(arguments=arguments, bound=bound)
        monkeypatch.setattr("placeopt.solvers.pulp_gateway.START", code)
        return load("pulp-scip")

    return made


def test_package_solves_what_is_known(through_package: Callable[..., Solve]) -> None:
    """Senses, offsets, ranges, empty objectives, hints, and an infeasible one, over to PuLP and back."""
    solve = through_package()
    for make, optimum in KNOWN.values():
        solution = solve(make(), LONG)
        assert (solution.status, solution.objective, solution.bound) == ("optimal", optimum, optimum)
    assert solve(knapsack(), SolveOptions(60.0, hint=np.array([1, 1, 0]))).objective == 227
    assert solve(infeasible(), LONG).status == "infeasible"


def test_optimum_of_a_package_needs_its_bound(through_package: Callable[..., Solve]) -> None:
    """PuLP has called optimal what was found at a limit; without the solver's bound its word is not enough."""
    for bound in ("None", "lambda m: m.no_such_thing", "lambda m: float('inf')"):
        solution = through_package(bound=bound)(knapsack(), LONG)
        assert (solution.status, solution.objective, solution.bound) == ("feasible", 227, 287)


def test_package_stopped_by_time(through_package: Callable[..., Solve]) -> None:
    """What PuLP calls optimal is a solution and no more, if there is one in time, and the limit is the time."""
    solution = through_package()(hard(), SolveOptions(4.0))
    assert solution.status in ("feasible", "no_solution")
    assert solution.limit == "time"
    if solution.status == "feasible":
        assert solution.objective < solution.bound < hard().objective.sum()


def test_package_that_is_killed(
    through_package: Callable[..., Solve], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It does not listen (HiGHS knows no SIGINT): ended 0.2 s later, nothing is left."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    before = children(os.getpid())  # workers of other tests may be kept
    stop = threading.Event()
    threading.Timer(2.0, stop.set).start()
    solution = through_package()(hard(), SolveOptions(60.0, hint=NOTHING), None, stop)
    assert (solution.status, solution.limit, solution.objective) == ("feasible", "user", 5)
    assert list(tmp_path.iterdir()) == []
    assert set(children(os.getpid())) <= set(before)


def test_package_refuses_an_option(through_package: Callable[..., Solve]) -> None:
    """By name, whatever exception it takes for that."""
    solve = through_package(arguments='{"no_such_option": 1, "warmStart": True}')
    with pytest.raises(BadInput, match="no_such_option=1"):
        solve(knapsack(), SolveOptions(9.0, extra=(("no_such_option", "1"),)))


def test_child_that_dies_is_an_error(through_package: Callable[..., Solve]) -> None:
    """With its last words."""
    solution = through_package(code="raise SystemExit('no more')")(knapsack(), LONG)
    assert (solution.status, solution.message) == ("error", "pulp-scip ended with exit code 1: no more")
