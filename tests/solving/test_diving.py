"""Diving: integers from a relaxation, by hand."""

import numpy as np

from placeopt.linear import NO_LOWER, LinearModel, ModelBuilder
from placeopt.solvers.highs import solve
from placeopt.solvers.result import Solution, SolveOptions
from placeopt.solving.diving import dive


def relax(model: LinearModel) -> Solution:
    """Solve the relaxation."""
    return solve(model, SolveOptions(time_limit_s=10, relax=True))


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
    relaxed = relax(model).relaxed_values
    assert relaxed is not None
    assert np.abs(relaxed - np.rint(relaxed)).max() > 1e-6
    values = dive(model, relaxed, (columns,), relax, lambda _: False)
    assert values is not None
    assert model.is_feasible(values)
    assert model.objective_value(values) >= model.objective_value(np.floor(relaxed + 1e-6).astype(np.int64))


def test_hopeless_values_end_it() -> None:
    """Before any solve."""
    model = knapsack()
    assert dive(model, np.array([1.5, 0.0]), (np.array([0, 1]),), relax, lambda _: True) is None


def test_no_answer_ends_it() -> None:
    """A solver out of time has no values; that is not taken for infeasible."""
    model = knapsack()
    answer = Solution("no_solution", "time")
    assert dive(model, np.array([0.5, 0.0]), (np.array([0, 1]),), lambda _: answer, lambda _: False) is None
