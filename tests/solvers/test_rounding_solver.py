"""Relaxations that are rounded: a bound that holds, and roundings that keep the rows."""

import numpy as np
import pytest

from helpers.night import seeds
from placeopt.linear import NO_LOWER, LinearModel, ModelBuilder
from placeopt.solvers import Progress, Rounding, SolveOptions, load

solve = load("highs")


def packing(seed: int) -> LinearModel:
    """Max c x with A x <= b: 60 columns, 8 rows, all numbers drawn."""
    random = np.random.default_rng(seed)
    builder = ModelBuilder()
    columns = builder.add_variables(0, random.integers(1, 6, 60))
    for _ in range(8):
        builder.add_row(columns, random.integers(1, 20, 60), NO_LOWER, int(random.integers(60, 200)))
    builder.set_objective(columns, random.integers(1, 30, 60), "max")
    return builder.build()


def rounding(model: LinearModel) -> Rounding:
    """Price the first half."""
    objective = 1000 * model.objective
    objective[:30] -= 40
    columns = np.arange(model.num_variables)
    return Rounding(objective, (columns[:30], columns[30:]))


@pytest.mark.parametrize("seed", seeds(12))
def test_a_relaxation_is_proven_and_rounded(seed: int) -> None:
    """The bound is that of the relaxation alone, and what is rounded keeps every row and is worth no more."""
    model = packing(seed)
    news: list[Progress] = []
    whole = solve(model, SolveOptions(time_limit_s=60, relax=True))
    found = solve(model, SolveOptions(time_limit_s=60, relax=True, rounding=rounding(model)), news.append)
    assert found.status == "optimal"
    assert whole.bound is not None
    assert found.bound is not None
    assert abs(found.bound - whole.bound) <= 1  # both are rounded to the safe side
    assert news[0].bound == found.bound
    assert found.rounded is not None
    assert model.is_feasible(found.rounded)
    assert model.objective_value(found.rounded) <= found.bound


def test_a_solve_on_other_threads_before_changes_nothing() -> None:
    """The scheduler of HiGHS is one for the whole process: made for two threads, it fails a solve on one."""
    model = packing(3)
    alone = solve(model, SolveOptions(time_limit_s=60, relax=True, rounding=rounding(model)))
    solve(model, SolveOptions(time_limit_s=60, threads=2))
    after = solve(model, SolveOptions(time_limit_s=60, relax=True, rounding=rounding(model)))
    assert (after.status, after.bound) == (alone.status, alone.bound) == ("optimal", alone.bound)


def test_work_ends_it() -> None:
    """Without a simplex iteration nothing is solved, and the bound is the trivial one."""
    model = packing(2)
    options = SolveOptions(time_limit_s=60, relax=True, work_limit=0.0, deterministic=True, rounding=rounding(model))
    found = solve(model, options)
    assert (found.status, found.limit) == ("no_solution", "work")
    assert found.bound == int((model.objective * model.upper).sum())
