"""The neutral model: what is built is what was said, exactly, or refused."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from placeopt import Unsupported
from placeopt.linear import MAX_EXACT, NO_LOWER, NO_UPPER, LinearModel, ModelBuilder


def dense(model: LinearModel) -> np.ndarray:
    matrix = np.zeros((model.num_rows, model.num_variables), dtype=np.int64)
    matrix[model.row_of_nonzero, model.columns] = model.coefficients
    return matrix


def test_hand_worked_model() -> None:
    """Two blocks of rows and an objective with an offset, checked number by number."""
    builder = ModelBuilder()
    x = builder.add_variables(0, 5, count=2)
    y = builder.add_variables([-1], [3])
    assert x.tolist() == [0, 1]
    assert y.tolist() == [2]
    assert builder.add_row(x, [1, 2], NO_LOWER, 7) == 0
    rows = builder.add_rows([1, 0, 1], [2, 1, 0], [1, 1, -3], [0, -4], [1, NO_UPPER])
    assert rows.tolist() == [1, 2]
    builder.set_objective([0, 2, 0], [4, 5, 1], "max", offset=10)
    model = builder.build()
    assert dense(model).tolist() == [[1, 2, 0], [0, 1, 0], [-3, 0, 1]]
    assert model.row_lower.tolist() == [NO_LOWER, 0, -4]
    assert model.row_upper.tolist() == [7, 1, NO_UPPER]
    assert model.objective.tolist() == [5, 0, 5]
    values = np.array([1, 2, -1])
    assert model.objective_value(values) == 10 + 5 - 5
    assert model.activities(values).tolist() == [5, 2, -4]
    assert model.violated_rows(values).tolist() == [1]
    assert not model.is_feasible(values)
    assert model.is_feasible(np.array([1, 1, -1]))
    assert (model.num_variables, model.num_rows, model.num_nonzeros) == (3, 3, 5)


def test_building_again_keeps_what_was_built() -> None:
    """Lexicographic levels add a row and change the objective between builds."""
    builder = ModelBuilder()
    x = builder.add_variables(0, 9, count=2)
    builder.set_objective(x, [1, 1], "max")
    first = builder.build()
    builder.add_row(x, [1, 1], 5, NO_UPPER)
    builder.add_variables(0, 1)
    builder.set_objective(x, [2, 3], "min")
    second = builder.build()
    assert (first.num_rows, second.num_rows) == (0, 1)
    assert (first.num_variables, second.num_variables) == (2, 3)
    assert (first.sense, second.sense) == ("max", "min")
    assert first.objective.tolist() == [1, 1]
    assert second.objective.tolist() == [2, 3, 0]


def test_arrays_are_read_only_and_our_own() -> None:
    """A model must not change under a solver, whoever held its arrays before."""
    lower = np.zeros(2, dtype=np.int64)
    builder = ModelBuilder()
    builder.add_variables(lower, 1)
    lower[0] = 7
    model = builder.build()
    assert model.lower.tolist() == [0, 0]
    with pytest.raises(ValueError, match="read-only"):
        model.upper[0] = 3


@pytest.mark.parametrize(
    ("coefficients", "lower", "upper", "expected"),
    [
        ([6, 10], 3, 9, ([3, 5], 2, 4)),  # 3/2 up, 9/2 down
        ([-4, 8], -5, NO_UPPER, ([-1, 2], -1, NO_UPPER)),
        ([3, 9], NO_LOWER, -1, ([1, 3], NO_LOWER, -1)),
        ([2, 3], 1, 5, ([2, 3], 1, 5)),
    ],
)
def test_rows_are_divided_by_their_gcd(coefficients, lower, upper, expected) -> None:
    """Small coefficients keep the sums small, and the rounded bounds make the relaxation tighter."""
    builder = ModelBuilder()
    x = builder.add_variables(-9, 9, count=2)
    builder.add_row(x, coefficients, lower, upper)
    model = builder.build()
    assert (model.coefficients.tolist(), int(model.row_lower[0]), int(model.row_upper[0])) == expected
    assert (model.coefficients * model.row_divisor).tolist() == coefficients


def test_what_float64_cannot_hold_is_refused_by_name() -> None:
    """Beyond 2**53 a float solver sees another model than we do."""
    builder = ModelBuilder()
    x = builder.add_variables(0, 2**30, count=3)
    builder.add_row(x, [1, 1, 1], 0, 5)
    with pytest.raises(Unsupported, match=r"row 2 \(row 1 of its block\)"):
        builder.add_rows([0, 1], x[:2], [1, 2**24], [0, 0], [1, 1])
    with pytest.raises(Unsupported, match="objective"):
        builder.set_objective(x, 2**23, "max")
    with pytest.raises(Unsupported, match="bound"):
        builder.add_variables(0, MAX_EXACT + 1)
    assert builder.num_rows == 1


def test_usage_errors() -> None:
    """Floats are not cut, indices not wrapped."""
    builder = ModelBuilder()
    builder.add_variables(0, 1, count=2)
    wrong: list[tuple[str, Callable[[], object]]] = [
        ("integers expected", lambda: builder.add_row([0], [1.5], 0, 1)),
        ("column", lambda: builder.add_row([2], [1], 0, 1)),
        ("column", lambda: builder.add_row([-1], [1], 0, 1)),
        ("row", lambda: builder.add_rows([1], [0], [1], [0], [1])),
        ("sense", lambda: builder.set_objective([0], [1], "maximize")),
        ("values for", lambda: builder.build().objective_value(np.zeros(3, dtype=np.int64))),
    ]
    for words, call in wrong:
        with pytest.raises(ValueError, match=words):
            call()


def test_values_outside_their_bounds_do_not_overflow() -> None:
    """A broken solver may return anything; the check itself must stay right."""
    builder = ModelBuilder()
    x = builder.add_variables(0, 1, count=2)
    builder.add_row(x, [2**40, 1], 0, 2**41)
    builder.set_objective(x, [2**40, 1], "max")
    model = builder.build()
    values = np.array([2**40, 0])
    assert model.objective_value(values) == 2**80
    assert model.violated_rows(values).tolist() == [0]
    assert model.violated_bounds(values).tolist() == [0]


@settings(max_examples=60)
@given(st.data())
def test_blocks_mean_the_same_as_dense_rows(data: st.DataObject) -> None:
    """Any order, any duplicates: the feasible points are those of the summed matrix, before any gcd."""
    rows, columns = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 4))
    entries = data.draw(
        st.lists(st.tuples(st.integers(0, rows - 1), st.integers(0, columns - 1), st.integers(-6, 6)), max_size=25)
    )
    lower = data.draw(st.lists(st.integers(-9, 3), min_size=rows, max_size=rows))
    matrix = np.zeros((rows, columns), dtype=np.int64)
    for row, column, coefficient in entries:
        matrix[row, column] += coefficient
    builder = ModelBuilder()
    builder.add_variables(-3, 3, count=columns)
    r, c, a = np.array(entries, dtype=np.int64).reshape(-1, 3).T
    builder.add_rows(r, c, a, lower, np.add(lower, 4))
    model = builder.build()
    for _ in range(20):
        values = np.array(data.draw(st.lists(st.integers(-3, 3), min_size=columns, max_size=columns)))
        activity = matrix @ values
        broken = np.flatnonzero((activity < lower) | (activity > np.add(lower, 4)))
        assert model.violated_rows(values).tolist() == broken.tolist()
