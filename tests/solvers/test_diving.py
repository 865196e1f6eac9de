"""Diving: integers from a relaxation, by hand."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from placeopt.linear import NO_LOWER, IntArray, LinearModel, ModelBuilder
from placeopt.solvers import SolveOptions
from placeopt.solvers.diving import Relaxed, dive
from placeopt.solvers.highs import solve


def relax(model: LinearModel) -> Callable[[IntArray, IntArray], Relaxed]:
    """Return what solves the relaxation within other bounds."""

    def within(lower: IntArray, upper: IntArray) -> Relaxed:
        solution = solve(
            replace(model, lower=lower.copy(), upper=upper.copy()), SolveOptions(time_limit_s=10, relax=True)
        )
        return Relaxed(solution.status, solution.relaxed_values)

    return within


def knapsack() -> LinearModel:
    """Max 3a + 2b with 2a + 2b <= 3: the relaxation has a = 1.5, and no way up from there."""
    builder = ModelBuilder()
    columns = builder.add_variables(0, [2, 2])
    builder.add_row(columns, [2, 2], NO_LOWER, 3)
    builder.set_objective(columns, [3, 2], "max")
    return builder.build()


def test_what_cannot_go_up_stays_down() -> None:
    """The row is halved to a + b <= 1 when it is added; a third row keeps the fraction."""
    builder = ModelBuilder()
    columns = builder.add_variables(0, [9, 9, 9])
    builder.add_row(columns, [3, 2, 5], NO_LOWER, 16)
    builder.add_row(columns[:2], [2, 3], NO_LOWER, 7)
    builder.set_objective(columns, [5, 4, 8], "max")
    model = builder.build()
    relaxed = relax(model)(model.lower, model.upper).values
    assert relaxed is not None
    assert np.abs(relaxed - np.rint(relaxed)).max() > 1e-6
    values = dive(model.lower, model.upper, relaxed, (columns,), relax(model), lambda _: False)
    assert values is not None
    assert model.is_feasible(values)
    assert model.objective_value(values) >= model.objective_value(np.floor(relaxed + 1e-6).astype(np.int64))


def test_hopeless_values_end_it() -> None:
    """Before any solve."""
    model = knapsack()
    values, groups = np.array([1.5, 0.0]), (np.array([0, 1]),)
    assert dive(model.lower, model.upper, values, groups, relax(model), lambda _: True) is None


def test_no_answer_ends_it() -> None:
    """A solver out of time has no values; that is not taken for infeasible."""
    model = knapsack()
    values, groups = np.array([0.5, 0.0]), (np.array([0, 1]),)
    answer = Relaxed("no_solution")
    assert dive(model.lower, model.upper, values, groups, lambda *_: answer, lambda _: False) is None
