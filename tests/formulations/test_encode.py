"""Hints: an allocation as values of all columns, those of rules and costs included."""

import numpy as np
import pytest

from helpers.brute_force import Enumeration
from helpers.small_rounds import random_round
from placeopt.formulations import add_assignment, add_counts, encode
from placeopt.linear import ModelBuilder
from placeopt.problem import compile_problem, open_state
from placeopt.terms.costs import COSTS
from placeopt.terms import cost_expression, value, value_expression, weighted_costs


@pytest.mark.parametrize("seed", range(0, 120, 20))
@pytest.mark.parametrize("changes", [False, True])
def test_any_allocation_is_a_solution_of_the_model(seed: int, changes: bool) -> None:
    """Solvers refuse a hint that breaks a row, and start from nothing: columns left at 0 would do that."""
    for number in range(seed, seed + 20):
        rng = np.random.default_rng(number)
        problem = compile_problem(random_round(rng, changes=changes))
        everything = Enumeration(problem)
        rows, _ = everything.rows()
        weighted = weighted_costs(problem)
        costs = tuple(w.cost for w in weighted)
        for name in ("assignment", "counts"):
            builder, state = ModelBuilder(), open_state(problem)
            variables = add_counts(builder, state, costs) if name == "counts" else add_assignment(builder, state)
            columns, coefficients, constant = value_expression(variables)
            priced = cost_expression(builder, variables, weighted)
            for row in rows[rng.integers(len(rows), size=4)]:
                allocation = everything.allocation(row)
                builder.set_objective(columns, coefficients, "max", constant)
                model = builder.build()
                values = encode(variables, allocation, builder)
                what = f"seed {number}, {name}: {allocation}"
                assert not len(model.violated_bounds(values)), what
                assert not len(model.violated_rows(values)), what
                assert model.objective_value(values) == value(problem, allocation), what
                builder.set_objective(priced[0], priced[1], "min", priced[2])
                found = builder.build().objective_value(values)
                scores = {w: w.weight * w.cost.score(problem, allocation) for w in weighted}
                if all(w.cost.form(problem) == "exact" for w in weighted):
                    assert found == sum(scores.values()), what
                else:
                    assert found <= sum(scores.values()), what


def test_every_cost_is_hinted() -> None:
    """The rounds drawn above switch every cost on somewhere, so none goes untested."""
    drawn = set()
    for number in range(120):
        problem = compile_problem(random_round(np.random.default_rng(number)))
        drawn |= {w.cost.name for w in weighted_costs(problem)}
    assert drawn == {cost.name for cost in COSTS}
