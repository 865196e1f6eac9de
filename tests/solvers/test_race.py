"""Two solvers on one model: what either verifies counts for both, and what befalls one does not befall the race."""

import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from helpers.solver_models import hard, infeasible, knapsack
from placeopt import Unsupported
from placeopt.linear import LinearModel
from placeopt.solvers import Progress, Solution, SolveOptions, Worker, race, stand_in

pytestmark = pytest.mark.usefixtures("own_processes")
BEST, GOOD = np.array([0, 1, 1]), np.array([1, 0, 1])
"""Of `knapsack`: worth 227, its optimum, and 187."""
OPTIONS = SolveOptions(60.0)


@dataclass
class Script:
    """A runner that says what it is told to, then ends with ``end``; without one it works until it is stopped."""

    news: Sequence[Progress] = ()
    end: Solution | None = None
    stopped: threading.Event = field(default_factory=threading.Event)
    threads: int = 0

    def solve(
        self,
        solver: str,
        model: LinearModel,
        options: SolveOptions,
        *,
        deadline: float,
        on_progress: Callable[[Progress], None] | None = None,
        cancel: Callable[[], bool] | None = None,
    ) -> Solution:
        """As `Worker.solve`."""
        del solver, model
        assert on_progress is not None
        assert cancel is not None
        self.threads = options.threads
        for progress in self.news:
            on_progress(progress)
        while self.end is None and not cancel() and time.monotonic() < deadline:
            time.sleep(0.005)
        self.stopped.set()
        return self.end or Solution("feasible", "user" if cancel() else "time")

    def close(self) -> None:
        """Nothing to close."""


def run(*scripts: Script, options: SolveOptions = OPTIONS, seconds: float = 10.0, **arguments: object) -> Solution:
    return race(scripts, knapsack(), options, deadline=time.monotonic() + seconds, **arguments)


def found(values: np.ndarray, bound: int = 287) -> Progress:
    return Progress(knapsack().objective_value(values), bound, 0.0, values)


def killed(limit: str = "none") -> Solution:
    return Solution("error", limit, bound=287, message="ended with signal 9", failed=True)


def test_a_solution_of_one_and_a_bound_of_the_other_are_a_proof() -> None:
    """That is what the race is for: neither has both, and both are stopped at once."""
    finder, bounder = Script([found(GOOD), found(BEST)]), Script([Progress(None, 227, 0.0)])
    solution = run(bounder, finder)
    assert (solution.status, solution.limit, solution.objective, solution.bound) == ("optimal", "none", 227, 227)
    assert solution.values is not None
    assert solution.values.tolist() == BEST.tolist()
    assert finder.stopped.wait(5)
    assert bounder.stopped.wait(5)


def test_news_are_those_of_the_race() -> None:
    """Never worse than what was said before, whoever says it, and told in the caller's thread."""
    news: list[tuple[int | None, int | None]] = []
    threads = set()

    def listen(progress: Progress) -> None:
        news.append((progress.objective, progress.bound))
        threads.add(threading.get_ident())

    late = Script([Progress(None, 240, 0.0), found(GOOD, 250)], Solution("no_solution", "time", bound=240))
    run(late, Script([found(BEST, 260)], Solution("no_solution", "time", bound=260)), on_progress=listen)
    assert threads == {threading.get_ident()}
    values, bounds = [v for v, _ in news if v is not None], [b for _, b in news]
    assert values == sorted(values)
    assert bounds == sorted(bounds, reverse=True)
    assert (values[-1], bounds[-1]) == (227, 240)


def test_a_killed_one_is_survived_and_named() -> None:
    """Also where the other proves the optimum, for somebody may want to know why it took so long."""
    slow = Script([found(BEST)])
    threading.Timer(0.3, lambda: setattr(slow, "end", Solution("optimal", "none", BEST, 227, 227))).start()
    solution = run(Script(end=killed()), slow)
    assert (solution.status, solution.failed, solution.message) == ("optimal", False, "highs: ended with signal 9")
    assert solution.outlived == solution.message


CLAIM = Solution("infeasible")


@pytest.mark.parametrize(
    ("one", "other", "options", "expected", "words"),
    [
        # only if all fail the race has failed, with what they had verified; out of memory is a cause of its own
        (Script([found(GOOD, 240)], killed("memory")), Script(end=killed()), {},
         {"status": "feasible", "limit": "memory", "failed": True, "objective": 187, "bound": 240},
         ["highs: ended", "cpsat: ended"]),
        (Script(end=killed()), Script(end=killed()), {}, {"status": "error"}, []),
        # one out of memory leaves the other to the clock: who ended last says why the race ended
        (Script(end=killed("memory")), Script([found(GOOD)]), {},
         {"status": "feasible", "limit": "time", "failed": False}, ["highs"]),
        # the gap asked for is that of both: 227 under a bound of 240 is within a tenth, and no proof
        (Script([Progress(None, 240, 0.0)]), Script([found(BEST)]), {"gap": 0.1},
         {"status": "feasible", "limit": "none", "bound": 240}, ["gap"]),
        # a bound that a solution beats is thrown away: one of the solvers is wrong, so nothing is optimal on the word
        # of either
        (Script([Progress(None, 200, 0.0)], Solution("no_solution", bound=200)), Script([found(BEST)], killed()), {},
         {"status": "feasible", "bound": 287}, ["against a verified solution"]),
        # infeasible never overrides a solution, for presolve has been wrong; without one the claim is passed on
        (Script(end=CLAIM), Script([found(BEST)]), {"hint": GOOD},
         {"status": "feasible", "limit": "time"}, ["claims infeasible"]),
        (Script(end=CLAIM), Script(), {}, {"status": "infeasible"}, []),
    ],
)  # fmt: skip
def test_how_a_race_ends(one: Script, other: Script, options: dict, expected: dict, words: list[str]) -> None:
    seconds = 0.3 if expected.get("limit") == "time" else 10.0
    solution = run(one, other, options=replace(OPTIONS, **options), seconds=seconds)
    assert {field: getattr(solution, field) for field in expected} == expected
    assert all(word in solution.message for word in words)


def test_cancel_and_ctrl_c_end_it() -> None:
    """With the best so far, limit ``user``."""
    one, other = Script([found(GOOD)]), Script()
    assert run(one, other, cancel=lambda: True).limit == "user"

    def interrupt(_: Progress) -> None:
        raise KeyboardInterrupt

    solution = run(Script([found(GOOD)]), other, on_progress=interrupt)
    assert (solution.limit, solution.objective) == ("user", 187)
    assert other.stopped.wait(5)


def test_what_the_callback_raises_ends_it() -> None:
    """And nobody is left at work."""

    def fail(_: Progress) -> None:
        raise LookupError("mine")

    one, other = Script([found(GOOD)]), Script()
    with pytest.raises(LookupError, match="mine"):
        run(one, other, on_progress=fail)
    assert one.stopped.wait(5)
    assert other.stopped.wait(5)


def test_what_a_solver_cannot_do_is_refused_before_the_start() -> None:
    """CP-SAT has no relaxations."""
    with pytest.raises(Unsupported):
        run(Script(), Script(), options=replace(OPTIONS, relax=True))


def test_threads_are_shared_out() -> None:
    """HiGHS has the odd one; CP-SAT two at least, on whatever cores there are."""
    for threads, shares in ((2, [1, 2]), (3, [2, 2]), (8, [4, 4])):
        scripts = [Script(end=killed()), Script(end=killed())]
        run(*scripts, options=replace(OPTIONS, threads=threads))
        assert [script.threads for script in scripts] == shares
    assert stand_in("highs") == "cpsat"
    assert [stand_in(solver) for solver in ("cpsat", "race", "pulp-cbc")] == ["highs"] * 3


@pytest.mark.parametrize("isolation", ["process", "thread"])
def test_real_solvers(isolation: str) -> None:
    """In processes and in threads: a known optimum, and no solution where there is none."""
    with Worker(isolation=isolation) as one, Worker(isolation=isolation) as other:
        runners, options = (one, other), replace(OPTIONS, threads=2)
        solution = race(runners, knapsack(), options, deadline=time.monotonic() + 20)
        assert (solution.status, solution.objective) == ("optimal", 227)
        assert race(runners, infeasible(), options, deadline=time.monotonic() + 20).status == "infeasible"


@pytest.mark.parametrize("victim", [0, 1])
def test_a_real_kill(victim: int) -> None:
    """The other goes on to the deadline, and nothing that was verified is lost."""
    model = hard()
    reported: list[int] = []

    def listen(progress: Progress) -> None:
        assert progress.objective is not None
        reported.append(progress.objective)
        pid = runners[victim].pid
        if len(reported) == 1 and pid is not None:
            os.kill(pid, signal.SIGKILL)

    hint = np.zeros(model.num_variables, dtype=np.int64)
    with Worker() as one, Worker() as other:
        runners = (one, other)
        options = replace(OPTIONS, hint=hint, threads=2)
        solution = race(runners, model, options, deadline=time.monotonic() + 3, on_progress=listen)
    assert (solution.status, solution.limit, solution.failed) == ("feasible", "time", False)
    assert "signal 9" in solution.message
    assert solution.objective == max(reported)
