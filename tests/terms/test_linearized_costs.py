"""Functions of sums made linear, many at a time."""

from itertools import product

import numpy as np
import pytest

from placeopt.errors import OutOfTime
from placeopt.linear import ModelBuilder
from placeopt.terms.costs.presence import Together
from placeopt.terms.linearized_costs import CostPrices, Rows, unary_digits


def test_digits_spell_each_sum_in_one_way_only() -> None:
    """Two sums that share a column, one capped at 2: every choice has exactly one row of digits, the capped none."""
    builder = ModelBuilder()
    x = builder.add_variables(0, 1, count=4)
    one, other = unary_digits(builder, [(x[:3], 2), (x[2:], 2)])
    model = builder.build()
    assert (len(one), len(other)) == (2, 2)
    spelled = {(0, 0): 0, (1, 0): 1, (1, 1): 2}
    for values in product((0, 1), repeat=8):
        sums = sum(values[:3]), sum(values[2:4])
        digits = values[4:6], values[6:8]
        expected = all(spelled.get(d) == k for d, k in zip(digits, sums, strict=True))
        assert model.is_feasible(np.array(values)) is expected


@pytest.mark.parametrize("price_of", [[0, 5, 3, 9], [0, -4, -4, -4]])
def test_any_function_of_a_sum_can_be_priced(price_of: list[int]) -> None:
    """Convex or not: the digits leave no choice once the columns are fixed."""
    builder = ModelBuilder()
    prices = CostPrices(builder)
    x = builder.add_variables(0, 1, count=3)
    prices.add(x[:1], np.array([100]))
    prices.add_count(x, np.array(price_of))
    columns, coefficients = prices.hand_over()
    for values in product((0, 1), repeat=3):
        k = sum(values)
        point = np.array([*values, *(1 if i < k else 0 for i in range(3))])
        assert builder.build().is_feasible(point)
        assert int((coefficients * point[columns]).sum()) == price_of[k] + 100 * values[0]


def test_a_sum_of_at_most_one_needs_no_digits_and_one_that_costs_nothing_no_columns() -> None:
    """Most cells are single GPUs."""
    builder = ModelBuilder()
    prices = CostPrices(builder)
    x = builder.add_variables(0, 1, count=3)
    prices.add_count(x[:1], np.array([0, 7]))
    prices.add_count(x, np.array([0, 0, 0, 0]))
    columns, coefficients = prices.hand_over()
    assert builder.num_variables == 3
    assert (columns.tolist(), coefficients.tolist()) == ([0], [7])


def test_a_pair_costs_where_both_columns_are_one() -> None:
    """At least: the helper is free to be 1 elsewhere, but costs, so no minimum has it so."""
    builder = ModelBuilder()
    prices = CostPrices(builder)
    x = builder.add_variables(0, 1, count=2)
    prices.add_both(x[:1], x[1:], np.array([6]))
    columns, coefficients = prices.hand_over()
    model = builder.build()
    assert (columns.tolist(), coefficients.tolist()) == ([2], [6])
    assert not model.is_feasible(np.array([1, 1, 0]))
    for point in ((1, 1, 1), (1, 0, 0), (0, 1, 0), (0, 0, 0)):
        assert model.is_feasible(np.array(point))


def test_collecting_terms_check_the_deadline() -> None:
    """A term may collect for seconds before it adds a row: each piece is refused once the deadline has passed."""
    builder = ModelBuilder(deadline=0.0)
    one, ten = np.array([0]), np.array([10])
    for late in (
        lambda: CostPrices(builder).add(one, ten),
        lambda: CostPrices(builder).add_count(one, np.array([0, 1, 3])),
        lambda: CostPrices(builder).add_both(one, one, ten),
        lambda: CostPrices(builder).add_product(0, 2, 1, 2, 5),
        lambda: Rows(builder).add([0], [1], 0, 1),
        lambda: Together(builder).request([[0, 1]], low=True, high=False),
    ):
        with pytest.raises(OutOfTime):
            late()
