"""A solve in another process: nothing is lost, nothing is late, nothing is left behind."""

import gc
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from helpers.processes import alive, eventually, solving, within
from helpers.solver_models import filled, hard, infeasible, knapsack
from placeopt import Unsupported
from placeopt.linear import ModelBuilder
from placeopt.solvers import Beside, Progress, Solution, SolveOptions, Worker

pytestmark = pytest.mark.usefixtures("own_processes")
LONG = SolveOptions(60.0)


@pytest.fixture(scope="module")
def shared() -> Iterator[Worker]:
    """One worker for the tests that do not harm it."""
    with Worker(preload=("highs", "cpsat")) as worker:
        yield worker


@pytest.fixture
def worker() -> Iterator[Worker]:
    """One for a test that harms it."""
    with Worker() as worker:
        yield worker


@pytest.fixture(params=["process", "thread"])
def runner(request: pytest.FixtureRequest, shared: Worker) -> Iterator[Worker]:
    """Both places where solves run."""
    if request.param == "process":
        yield shared
    else:
        with Worker(isolation="thread") as runner:
            yield runner


def solves(runner: Worker, solver: str = "highs") -> bool:
    """Whether the runner is ready for the next solve, and ends it well."""
    return runner.solve(solver, knapsack(), LONG, deadline=within(20)).objective == 227


def ended(solution: Solution) -> tuple[str, str]:
    return solution.status, solution.limit


@pytest.mark.parametrize("solver", ["highs", "cpsat", "pulp-cbc"])
def test_answers(runner: Worker, solver: str) -> None:
    """The same answers as without a process in between, statuses, duals and relaxed values included."""
    solution = runner.solve(solver, knapsack(), LONG, deadline=within(20))
    assert (solution.status, solution.objective, solution.values.tolist()) == ("optimal", 227, [0, 1, 1])
    assert runner.solve(solver, infeasible(), LONG, deadline=within(20)).status == "infeasible"
    if solver == "highs":
        solution = runner.solve(solver, knapsack(), replace(LONG, relax=True), deadline=within(20))
        assert (solution.status, solution.bound) == ("optimal", 247)
        assert solution.duals == pytest.approx([40])


@pytest.mark.parametrize("solver", ["highs", "cpsat", "pulp-cbc"])
def test_deadline_is_kept_and_progress_comes_in_between(runner: Worker, solver: str) -> None:
    """
    The solver's own limit is far away: it is the deadline that ends this.

    A worker ignores SIGINT, and what it starts inherits that; CBC is stopped by it all the same.
    """
    model, news = hard(), []
    hinted = replace(LONG, hint=filled(model))  # all there is, on a busy machine
    seconds = 3.0 if solver == "pulp-cbc" else 0.7  # a program has to start before it is stopped
    solution = runner.solve(solver, model, hinted, deadline=within(seconds), on_progress=news.append)
    assert ended(solution) == ("feasible", "time")
    assert model.is_feasible(solution.values)
    found = [item.objective for item in news if item.values is not None]
    assert solution.objective == max(found, default=model.objective_value(hinted.hint))
    assert solution.bound >= solution.objective
    assert solves(runner, solver)


def test_cancel(runner: Worker) -> None:
    """Somebody else decides that it is enough."""
    news: list[Progress] = []

    def enough() -> bool:
        return any(item.values is not None for item in news)

    solution = runner.solve("highs", hard(), LONG, deadline=within(600), on_progress=news.append, cancel=enough)
    assert ended(solution) == ("feasible", "user")


@pytest.mark.parametrize(
    ("solver", "change", "message"),
    [("cpsat", {"relax": True}, "highs"), ("nosuch", {}, "cpsat")],
)  # fmt: skip
def test_unsupported_is_refused_at_the_door(runner: Worker, solver: str, change: dict, message: str) -> None:
    """Before a model is sent anywhere; the message names who can."""
    with pytest.raises(Unsupported, match=message):
        runner.solve(solver, knapsack(), replace(LONG, **change), deadline=within(1))


def test_what_fails_leaves_the_runner_to_the_next(runner: Worker) -> None:
    """An error over there is an answer; what the caller's own callback raises is the caller's."""
    wrong = replace(LONG, extra=(("no_such_option", "1"),))
    solution = runner.solve("highs", knapsack(), wrong, deadline=within(20))
    assert solution.status == "error"
    assert "no_such_option" in solution.message
    assert solves(runner)

    def fail(_: Progress) -> None:
        raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        runner.solve("highs", hard(), LONG, deadline=within(20), on_progress=fail)
    assert solves(runner)


def test_feasible_hint_survives_a_passed_deadline(runner: Worker) -> None:
    """No time at all still returns what the caller brought."""
    solution = runner.solve("cpsat", knapsack(), replace(LONG, hint=np.array([1, 1, 0])), deadline=within(-1))
    assert (*ended(solution), solution.objective) == ("feasible", "time", 167)


@pytest.mark.parametrize(
    ("solver", "names"),
    [("highs", ("output_flag", "log_to_console")), ("cpsat", ("log_search_progress", "log_to_stdout"))],
)
def test_what_solvers_print_does_not_corrupt_the_stream(shared: Worker, solver: str, names: tuple[str, str]) -> None:
    """Protocol and standard output are different descriptors in the child."""
    chatty = replace(LONG, extra=tuple((name, "true") for name in names))
    assert shared.solve(solver, knapsack(), chatty, deadline=within(20)).objective == 227


def solve_and_hit(worker: Worker, how: signal.Signals) -> tuple[Solution, int]:
    """Solve, and send the child a signal as soon as it has reported a solution; return its process, too."""
    hit: list[int] = []

    def on_progress(progress: Progress) -> None:
        if progress.values is not None and not hit:
            hit.append(worker.pid)
            os.kill(worker.pid, how)

    return worker.solve("highs", hard(), LONG, deadline=within(4.0), on_progress=on_progress), hit[0]


def test_killed_child_loses_nothing(worker: Worker) -> None:
    """The kernel kills without warning: the last verified solution is the answer, the cause is named."""
    solution, _ = solve_and_hit(worker, signal.SIGKILL)
    assert ended(solution) == ("feasible", "none")
    assert "SIGKILL" in solution.message
    assert hard().is_feasible(solution.values)
    assert solution.bound >= solution.objective
    assert solves(worker), "a new child"


def test_child_that_hangs_is_killed_at_the_deadline(worker: Worker) -> None:
    """It does not even listen; nor is it left behind, stopped."""
    solution, child = solve_and_hit(worker, signal.SIGSTOP)
    assert ended(solution) == ("feasible", "time")
    assert eventually(lambda: not alive(child))


def test_worker_that_stays_warm_replaces_a_killed_child_at_once() -> None:
    """The next round finds a solver that is loaded; after the last one nothing is left."""
    with Worker() as worker:
        worker.stays_warm = True
        _, killed = solve_and_hit(worker, signal.SIGKILL)
        fresh = worker.pid
        assert fresh not in (None, killed)
        assert solves(worker)
        assert worker.pid == fresh, "the child that was started ahead"
    assert eventually(lambda: not alive(fresh))


def test_child_that_has_not_started_yet_is_not_killed_for_that() -> None:
    """It is given up three times while it imports its solvers, as who loses a race on a small model; then it solves."""
    with Worker(preload=("highs", "cpsat")) as worker:
        child = worker.pid
        os.kill(child, signal.SIGSTOP)  # on a machine that has no time for it
        for _ in range(3):
            given_up = worker.solve("highs", hard(), LONG, deadline=within(20), cancel=lambda: True)
            assert ended(given_up) == ("no_solution", "user")
        os.kill(child, signal.SIGCONT)
        assert solves(worker)
        assert worker.pid == child


def test_closing_a_worker_that_stays_warm_during_a_solve_leaves_nothing() -> None:
    """A solve that lost a race may still be at work when its runner is closed."""
    worker = Worker()
    worker.stays_warm = True
    assert solves(worker)
    os.kill(worker.pid, signal.SIGSTOP)
    solve = threading.Thread(target=lambda: worker.solve("highs", hard(), LONG, deadline=within(20)))
    solve.start()
    time.sleep(0.2)
    worker.close()
    solve.join(20)
    assert worker.pid is None


def test_child_that_dies_while_idle_is_replaced(worker: Worker) -> None:
    """Between two rounds the memory killer may come by."""
    assert solves(worker)
    first = worker.pid
    os.kill(first, signal.SIGKILL)
    assert eventually(lambda: not os.path.exists(f"/proc/{first}")), "reaped, without anybody asking"
    assert solves(worker)
    assert worker.pid != first


def test_memory_limit(worker: Worker) -> None:
    """A cap on what the solve may add; the failure is an answer, and says memory."""
    n = 200_000
    builder = ModelBuilder()
    x = builder.add_variables(0, 1, count=n)
    builder.add_rows(np.arange(n) // 10, x, 1, np.zeros(n // 10, dtype=np.int64), 3)
    builder.set_objective(x, np.arange(n) % 17, "max")
    solution = worker.solve("cpsat", builder.build(), replace(LONG, memory_limit_mib=1), deadline=within(10))
    assert solution.limit == "memory", solution
    assert solution.status in ("error", "feasible")
    assert solves(worker, "cpsat")


@pytest.mark.parametrize(
    ("program", "reason"), [("/no/such/python", "No such file"), ("/bin/false", "could not start")]
)
def test_worker_that_cannot_start(program: str, reason: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """No interpreter, or one without this library: an answer with the reason, not an exception."""
    monkeypatch.setattr(sys, "executable", program)
    with Worker() as worker:
        solution = worker.solve("highs", knapsack(), LONG, deadline=within(5))
    assert solution.status == "error"
    assert reason in solution.message


def test_large_model_does_not_block_past_the_deadline(worker: Worker) -> None:
    """A pipe holds 64 KiB; a child that does not read must not hold up the parent."""
    builder = ModelBuilder()
    builder.set_objective(builder.add_variables(0, 1, count=500_000), 1, "max")
    assert solves(worker)
    os.kill(worker.pid, signal.SIGSTOP)
    solution = worker.solve("highs", builder.build(), LONG, deadline=within(0.3))
    assert (*ended(solution), solution.bound) == ("no_solution", "time", 500_000)


def test_close_is_idempotent_and_leaves_nothing() -> None:
    """No process, no zombie, no thread; not even when nobody closes."""
    threads = threading.active_count()
    worker = Worker()
    worker.close()
    worker.start()
    pid = worker.pid
    worker.close()
    worker.close()
    assert not os.path.exists(f"/proc/{pid}")
    assert eventually(lambda: threading.active_count() <= threads)
    forgotten = Worker()
    forgotten.start()
    pid = forgotten.pid
    del forgotten
    gc.collect()
    assert eventually(lambda: not os.path.exists(f"/proc/{pid}") and threading.active_count() <= threads)


def test_ctrl_c_returns_the_best_so_far(worker: Worker) -> None:
    """KeyboardInterrupt in the parent ends the solve, not the program (trap 12)."""
    assert solves(worker, "cpsat")
    threading.Timer(0.4, os.kill, (os.getpid(), signal.SIGINT)).start()
    hinted = replace(LONG, hint=filled(hard()))  # all there is, on a busy machine
    assert ended(worker.solve("cpsat", hard(), hinted, deadline=within(60))) == ("feasible", "user")
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("solver", ["cpsat", "highs"])
def test_sigint_to_the_worker_is_ignored(solver: str, worker: Worker) -> None:
    """A signal to the child is no interruption of ours: it goes on to its time limit."""
    assert solves(worker, solver)
    threading.Timer(0.2, os.kill, (worker.pid, signal.SIGINT)).start()
    solution = worker.solve(solver, hard(), SolveOptions(0.6), deadline=within(20))
    assert (solution.limit, solution.failed) == ("time", False)


EXIT = """
import sys, time
sys.path.insert(0, {tests!r})
from helpers.solver_models import hard
from placeopt.solvers import SolveOptions, Worker
runners, model = [Worker(isolation="thread") for _ in range(3)], hard(columns=2000, rows=300)
for runner in runners:
    runner.solve({solver!r}, model, SolveOptions(60.0, threads=4), deadline=time.monotonic() + 0.3)
"""


@pytest.mark.parametrize("solver", ["cpsat", "highs"])
def test_a_program_ends_well_after_solves_in_threads(solver: str) -> None:
    """Also where nobody closes the runner, and a solver that was left behind at the deadline is still at work."""
    code = EXIT.format(tests=str(Path(__file__).parents[1]), solver=solver)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")


def test_child_dies_with_its_parent() -> None:
    """In the middle of a solve, and without the parent having a chance to tidy up (trap 13)."""
    with solving("highs") as parent:
        child = int(parent.stdout.readline())
        assert parent.stdout.readline() == "solving\n"
        assert alive(child)
        parent.kill()
        parent.wait()
        assert eventually(lambda: not alive(child))


def test_second_thread_waits_its_turn(shared: Worker) -> None:
    """One solve at a time; who waits too long gets an answer that says so."""
    results = []
    busy = threading.Thread(target=lambda: results.append(shared.solve("highs", hard(), LONG, deadline=within(0.8))))
    busy.start()
    time.sleep(0.2)
    solution = shared.solve("highs", knapsack(), LONG, deadline=within(0.1))
    assert ended(solution) == ("no_solution", "time")
    assert "busy" in solution.message
    assert solves(shared)
    busy.join()
    assert results[0].status == "feasible"


def test_a_solver_late_on_its_own_limit_is_ended(shared: Worker) -> None:
    """The deadline may be far, the caller's time limit counts as well (trap 10)."""
    assert ended(shared.solve("highs", hard(), SolveOptions(0.3), deadline=within(600))) == ("feasible", "time")
    assert shared.solve("highs", knapsack(), LONG, deadline=float("inf")).objective == 227


class TestBeside:
    """A solve that goes on while its caller works."""

    @staticmethod
    def begun(worker: Worker, model: Callable = hard, solver: str = "highs", **fields: object) -> Beside:
        """Begin a solve that nothing ends within the hour."""
        return Beside(worker, solver, model(), SolveOptions(3600.0), deadline=within(3600), **fields)

    def test_it_is_waited_for(self, shared: Worker) -> None:
        """The second time costs nothing."""
        beside = self.begun(shared, knapsack)
        solution = beside.wait(60.0)
        assert isinstance(solution, Solution)
        assert solution.objective == 227
        assert beside.wait(0.0) is solution

    def test_one_that_is_dropped_leaves_its_runner_to_others(self, shared: Worker) -> None:
        """It ends with the news before, if there were any."""
        beside = self.begun(shared)
        assert beside.wait(0.2) is None
        beside.drop()
        assert solves(shared)
        found = beside.wait(60.0)
        assert found is not None
        assert isinstance(found, Progress) or found.limit == "user"

    def test_the_caller_cancels_it(self, shared: Worker) -> None:
        """As every other solve of a round."""
        found = self.begun(shared, cancel=lambda: True).wait(60.0)
        assert isinstance(found, Solution)
        assert found.limit == "user"

    def test_an_exception_is_raised_again_in_wait(self, shared: Worker) -> None:
        with pytest.raises(Unsupported, match="nobody"):
            self.begun(shared, knapsack, "nobody").wait(60.0)
