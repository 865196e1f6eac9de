"""One suite for every solver: what one can do, all must do alike."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from helpers.solver_models import INFEASIBLE, KNOWN, filled, hard, knapsack, model
from placeopt import BadInput, Unsupported
from placeopt.linear import LinearModel
from placeopt.solvers import SOLVERS, Progress, Solution, SolveOptions, available, load

STREAMING = frozenset(name for name in SOLVERS if SOLVERS[name].capability.progress)
"""Those that report solutions while they run; the others need time to start and to end."""
each_solver = pytest.mark.parametrize("solver", list(available()))


def stored(name: str) -> LinearModel:
    """Read a model of `tests/data`."""
    with np.load(Path(__file__).parent.parent / "data" / f"{name}.npz") as arrays:
        return LinearModel(**dict(arrays), offset=0, sense="min")


def ended(solution: Solution) -> tuple[str, str]:
    return solution.status, solution.limit


@each_solver
@pytest.mark.parametrize("name", list(KNOWN))
def test_known_optimum(solver: str, name: str) -> None:
    """Trap 1 is among them: a model whose optimum another solver gets wrong."""
    make, optimum = KNOWN[name]
    solution = load(solver)(make(), SolveOptions(10.0))
    assert ended(solution) == ("optimal", "none")
    assert solution.objective == solution.bound == make().objective_value(solution.values) == optimum
    assert make().is_feasible(solution.values)
    assert solution.values.dtype == np.int64


@each_solver
@pytest.mark.parametrize("name", list(INFEASIBLE))
def test_infeasible_is_a_status(solver: str, name: str) -> None:
    """Never an exception, and nothing is read from a solver that found nothing (trap 2)."""
    solution = load(solver)(INFEASIBLE[name], SolveOptions(10.0))
    assert (solution.status, solution.values, solution.objective) == ("infeasible", None, None)


@each_solver
def test_random_models_against_brute_force(solver: str) -> None:
    """All points of small boxes, enumerated: the one judge that shares no code with any solver."""
    rng = np.random.default_rng(7)
    for _ in range(25):
        n, m = int(rng.integers(1, 5)), int(rng.integers(1, 5))
        matrix, upper, costs = rng.integers(-5, 6, (m, n)), rng.integers(-4, 12, m), rng.integers(-9, 10, n)
        sense, offset = "max" if rng.random() < 0.5 else "min", int(rng.integers(-5, 5))
        rows = zip(matrix, upper - 9, upper, strict=True)
        points = np.array(np.meshgrid(*[np.arange(-1, 3)] * n)).reshape(n, -1).T
        sums = points @ matrix.T
        found = points[((sums <= upper) & (sums >= upper - 9)).all(axis=1)] @ costs + offset
        drawn = model(sense, costs.tolist(), *rows, low=-1, high=2, offset=offset)
        solution = load(solver)(drawn, SolveOptions(5.0))
        assert solution.status == ("optimal" if len(found) else "infeasible"), solution.message
        assert solution.objective == (None if not len(found) else found.max() if sense == "max" else found.min())


@each_solver
def test_a_model_that_presolve_calls_infeasible(solver: str) -> None:
    """The cost level of a random small round: HiGHS 1.14 presolves it to infeasible, and its optimum is 0."""
    solution = load(solver)(stored("highs_presolve"), SolveOptions(20.0))
    assert (solution.status, solution.objective) == ("optimal", 0)


def test_a_relaxation_of_large_costs() -> None:
    """
    Coefficients from 8e5 to 6e9, of columns of groups of GPUs on a round of 400 jobs.

    At the costs as they are, HiGHS 1.14 ends with ``kNotset``: its dual ratio test fails at such dual values.
    """
    costly = stored("highs_large_costs")
    solution = load("highs")(costly, SolveOptions(60.0, relax=True))
    assert (solution.status, solution.message) == ("optimal", "")
    optimum = float(costly.objective @ solution.relaxed_values)
    assert optimum - 1e-6 * abs(optimum) <= solution.bound <= optimum + 1


@each_solver
def test_stopped_by_time(solver: str) -> None:
    """What was found is returned, bounded on the right side, and the limit says why."""
    news: list[Progress] = []
    # On a busy machine there may be the hint and nothing more.
    limit, hint = 0.5 if solver in STREAMING else 3.0, np.zeros(hard().num_variables, dtype=np.int64)
    solution = load(solver)(hard(), SolveOptions(limit, hint=hint), news.append)
    assert ended(solution) == ("feasible", "time")
    assert hard().is_feasible(solution.values)
    assert solution.objective < solution.bound
    objectives, bounds = [item.objective for item in news if item.values is not None], [item.bound for item in news]
    assert objectives == sorted(set(objectives)), "every report of values is a better one"
    assert bounds == sorted(bounds, reverse=True)
    assert not objectives or objectives[-1] == solution.objective


@each_solver
def test_no_time_at_all(solver: str) -> None:
    """CP-SAT's bound reads 0 when it has none, which would 'prove' nothing better than 0 for a maximum."""
    solution = load(solver)(hard(), SolveOptions(1e-6))
    assert solution.status in ("no_solution", "feasible")
    assert solution.limit == "time"
    assert solution.bound >= 10_000


@pytest.fixture
def bystander() -> Iterator[subprocess.Popen[bytes]]:
    """Another program that this thread has started."""
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as process:
        yield process
        process.kill()


@each_solver
def test_stop_event_ends_the_solve(solver: str, bystander: subprocess.Popen[bytes]) -> None:
    """
    How the parent asks: the answer is what there is; the limit of ten minutes would be named otherwise.

    What else this thread has started is not ended with the solver's program.
    """
    stop = threading.Event()
    if solver not in STREAMING:
        threading.Timer(2.0, stop.set).start()
    solution = load(solver)(
        hard(), SolveOptions(600.0), lambda news: stop.set() if news.values is not None else None, stop=stop
    )
    assert bystander.poll() is None
    assert solution.limit == "user"
    # One that does not stream and has to be killed, in the midst of a root node, leaves nothing.
    assert solution.status == "feasible" or (solver not in STREAMING and solution.status == "no_solution")


@each_solver
def test_hints(solver: str) -> None:
    """Solvers drop complete hints (trap 11), the reading keeps them; an infeasible one is only a suggestion."""
    hint = filled(hard())
    again = load(solver)(hard(), SolveOptions(1e-3, hint=hint))
    assert again.status == "feasible"
    assert again.objective >= hard().objective_value(hint) > 1000
    assert load(solver)(knapsack(), SolveOptions(5.0, hint=np.array([1, 1, 1]))).objective == 227
    with pytest.raises(ValueError, match="hint"):
        load(solver)(knapsack(), SolveOptions(5.0, hint=np.array([1, 1])))


@each_solver
def test_gap_is_not_a_proof(solver: str) -> None:
    """Solvers call a solution within the gap optimal; we do not."""
    solution = load(solver)(hard(), SolveOptions(20.0, gap=0.2))
    assert ended(solution) == ("feasible", "none")
    assert solution.objective < solution.bound <= 1.3 * solution.objective


@each_solver
def test_deterministic_runs_agree(solver: str) -> None:
    """Cut by work, not by the clock: the same values, whatever else the machine does (trap 14)."""
    options = SolveOptions(60.0, deterministic=True, work_limit=0.1, seed=3)
    if not SOLVERS[solver].capability.deterministic:
        with pytest.raises(Unsupported, match="highs"):
            load(solver)(hard(), options)
        return
    first, second = (load(solver)(hard(columns=150, rows=30), options) for _ in range(2))
    assert first.limit == second.limit == "work"
    assert first.values.tolist() == second.values.tolist()
    assert (first.objective, first.bound) == (second.objective, second.bound)


@each_solver
def test_unknown_extra_option(solver: str) -> None:
    """A typing error is an error, not a silent default."""
    with pytest.raises(BadInput, match="no_such_option"):
        load(solver)(knapsack(), SolveOptions(1.0, extra=(("no_such_option", "1"),)))


@each_solver
def test_several_thread_counts_in_one_process(solver: str) -> None:
    """HiGHS fails silently with objective 0 if its scheduler was made for another number (trap 8)."""
    for threads in (1, 2, 1, 2):
        assert load(solver)(knapsack(), SolveOptions(5.0, threads=threads)).objective == 227


@each_solver
def test_large_objectives_are_exact(solver: str) -> None:
    """A unit beside 1e12 is a unit: floats that are cut, or gaps relative to the objective, would lose it."""
    large = model("max", [10**12, 10**12 + 1, 10**12 + 2], ([1, 1, 1], 0, 2))
    solution = load(solver)(large, SolveOptions(5.0))
    if solver in ("cpsat", "highs", "pulp-cbc"):
        assert (solution.status, solution.objective) == ("optimal", 2 * 10**12 + 3)
    else:  # numbers that differ by 1e-9 of themselves are the same to them
        assert solution.status == "feasible"
        assert solution.bound >= 2 * 10**12 + 3


def test_relaxation_with_certified_bound() -> None:
    """The LP of the knapsack takes x, y and 2/3 of z: 60 + 100 + 80 + 7 = 247; a unit of weight is worth 4."""
    solution = load("highs")(knapsack(), SolveOptions(5.0, relax=True))
    assert (solution.status, solution.values, solution.objective, solution.bound) == ("optimal", None, None, 247)
    assert solution.relaxed_values == pytest.approx([1, 1, 2 / 3])
    assert solution.duals / knapsack().row_divisor == pytest.approx([4])


def test_relaxations_that_do_not_end_well() -> None:
    """Infeasible is a status here too, and a relaxation without time still has the trivial bound."""
    assert load("highs")(model("max", [0, 0], ([1, 1], 3, 4)), SolveOptions(5.0, relax=True)).status == "infeasible"
    solution = load("highs")(hard(columns=3000, rows=400), SolveOptions(1e-4, relax=True))
    assert ended(solution) == ("no_solution", "time")
    assert solution.bound is not None


@each_solver
def test_relaxations_need_the_capability(solver: str) -> None:
    """The message names who can."""
    if not SOLVERS[solver].capability.relax:
        with pytest.raises(Unsupported, match="highs"):
            load(solver)(knapsack(), SolveOptions(1.0, relax=True))


def test_progress_without_values_repeats_the_objective() -> None:
    """A reader of the stream needs no memory to draw a gap."""
    news, stop = list[Progress](), threading.Event()

    def listen(item: Progress) -> None:
        news.append(item)
        if item.values is None:
            stop.set()

    load("cpsat")(hard(), SolveOptions(600.0), listen, stop)
    without = [item for item in news if item.values is None]
    assert without
    assert all(item.bound is not None for item in without)
