"""``assignment`` and ``counts``: an allocation as values of all columns, and back."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from helpers.brute_force import Enumeration, combinations_up_to
from helpers.machines import sockets
from placeopt import Engine, Instance
from placeopt.build import instance, job, option
from placeopt.formulations import add_assignment, add_counts, decode, encode
from placeopt.linear import ModelBuilder
from placeopt.model import Communication
from placeopt.problem import Placement, State, compile_problem, open_state
from placeopt.terms import cost_expression, value, value_expression, weighted_costs
from strategies import rounds


@given(rounds(), st.integers(0, 2**32))
def test_any_allocation_is_a_solution_of_the_model(round_: Instance, seed: int) -> None:
    """Solvers refuse a hint that breaks a row, and start from nothing: columns left at 0 would do that."""
    problem, rng = compile_problem(round_), np.random.default_rng(seed)
    assume(combinations_up_to(problem, 40) <= 3000)
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
            what = f"{name}: {allocation}"
            assert not len(model.violated_bounds(values)), what
            assert not len(model.violated_rows(values)), what
            assert model.objective_value(values) == value(problem, allocation), what
            builder.set_objective(priced[0], priced[1], "min", priced[2])
            found = builder.build().objective_value(values)
            scores = sum(w.weight * w.cost.score(problem, allocation) for w in weighted)
            assert found <= scores, what
            assert found == scores or not all(w.cost.form(problem) == "exact" for w in weighted), what


@pytest.mark.parametrize("add", [add_assignment, add_counts])
def test_encode_and_decode_are_each_others_inverse(add) -> None:
    """A hint that says something else than the plan it was made of would be worse than none."""
    options = (option("gang", workers=2, gpus=2), option("one", gpus=1, gpu_milli=500))
    problem = compile_problem(instance(2, [job("a", options=options), job("b", options=options), job("c", gpus=0)]))
    builder, state = ModelBuilder(), State(problem)
    variables = add(builder, state)
    allocation = (Placement(0, (0, 1), (1, 2, 4, 7)), Placement(1, (0,), (0,)), Placement(2, (1,), ()))
    values = encode(variables, allocation, builder)
    assert decode(variables, values) == allocation
    assert builder.build().is_feasible(values)


def test_decode_refuses_values_that_do_not_add_up() -> None:
    """Rows forbid them, so it is a solver's fault and must not become a plan."""
    builder = ModelBuilder()
    variables = add_counts(builder, State(compile_problem(instance(1, [job("a"), job("b")]))))
    for start, bundle, grant in ((1, 0, 0), (1, 1, 0), (2, 1, 1), (1, 1, 2)):
        values = np.zeros(builder.num_variables, dtype=np.int64)
        values[variables.start], values[variables.bundle], values[variables.grant] = start, bundle, grant
        with pytest.raises(ValueError, match=r"GPUs granted|bundles for"):
            decode(variables, values)


@pytest.mark.parametrize("method", ["counts", "counts-cpsat", "assignment", "assignment-highs"])
def test_two_gangs_of_two_on_minsky_find_a_socket_each(method: str, engine: Engine) -> None:
    """The first example of every reader: two pairs, two sockets, nobody across (SC'17 fig. 1)."""
    pairs = [job(f"{i}", gpus=2, communication=Communication(weight=4)) for i in range(2)]
    plan = engine.solve(instance(1, pairs, machines=[sockets(2, 2)]), method=method)
    assert (plan.status, plan.costs["communication"].raw) == ("optimal", 2 * 4 * 2)
    assert {tuple(held.assignments[0].gpus) for held in plan.placements} == {("0", "1"), ("2", "3")}


@pytest.mark.parametrize("method", ["counts", "counts-cpsat"])
def test_jobs_that_are_alike_are_one_column(method: str, engine: Engine) -> None:
    """A hundred jobs of a GPU on two nodes of four: the model has a handful of columns, and eight jobs start."""
    plan = engine.solve(instance(2, [job(f"{i:02}", value=1 + (i == 99)) for i in range(100)]), method=method)
    assert plan.levels[0].objective == plan.levels[0].bound == 9
