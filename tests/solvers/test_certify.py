"""A certified bound holds for any multipliers, and is tight for good ones."""

import numpy as np
import pytest

from helpers.solver_models import KNOWN, covering, hard, knapsack, model
from placeopt.linear import NO_LOWER, NO_UPPER, LinearModel
from placeopt.solvers import SolveOptions, dual_bound, load, trivial_bound


def test_hand_worked_bound() -> None:
    """
    Knapsack, whose row was divided by 10: 1x + 2y + 3z <= 5, with multiplier 50.

    250 for the row, reduced costs 60 - 50, 100 - 100, 120 - 150: 250 + 10 + 0 + 0 + 7 = 267.
    """
    assert dual_bound(knapsack(), np.array([50.0])) == 267
    assert dual_bound(knapsack(), np.array([40.0])) == 247
    assert dual_bound(knapsack(), np.array([0.0])) == trivial_bound(knapsack()) == 287


def test_bounds_are_rounded_to_integers_on_the_safe_side() -> None:
    """Multiplier 40.02: 200.1 + 19.98 + 19.96 + 0 (-0.06) + 7 = 247.04, and objectives are integers: 247."""
    assert dual_bound(knapsack(), np.array([40.02])) == 247
    # min 5x + 4y - 3 with y_1 = 2.2, y_2 = 0.6: 15.4 + 5.4 - 3 and reduced costs 0, 0: 17.8, so at least 18
    assert dual_bound(covering(), np.array([2.2, 0.6])) == 18


def test_multipliers_that_lean_on_nothing_count_as_zero() -> None:
    """The row has no lower bound, so a negative multiplier proves nothing; nor does one that is not a number."""
    for useless in (-3.0, np.nan, np.inf, -np.inf, 1e300):
        assert dual_bound(knapsack(), np.array([useless])) == 287
    with pytest.raises(ValueError, match="duals for"):
        dual_bound(knapsack(), np.zeros(2))


@pytest.mark.parametrize("name", list(KNOWN))
def test_any_multipliers_bound_the_optimum(name: str) -> None:
    """Random signs and sizes, on models whose optimum is known."""
    make, optimum = KNOWN[name]
    known = make()
    rng = np.random.default_rng(5)
    for size in (0.01, 1.0, 100.0, 1e7, 1e15, 1e30):
        for _ in range(40):
            bound = dual_bound(known, rng.normal(0, size, known.num_rows))
            assert (bound - optimum) * (1 if known.sense == "max" else -1) >= 0


def test_duals_of_a_solver_give_its_own_bound() -> None:
    """Tight means: within a unit of the relaxation's objective, which is itself only a float."""
    for seed in range(3):
        solution = load("highs")(hard(seed), SolveOptions(10.0, relax=True))
        relaxed = float(hard(seed).objective @ solution.relaxed_values) + hard(seed).offset
        assert int(np.floor(relaxed - 1e-6)) <= solution.bound <= int(np.floor(relaxed + 1e-6))


def exact_bound(model: LinearModel, numerators: list[int], denominator: int) -> int:
    """The same formula in plain Python integers, for a maximisation and rational multipliers."""
    total = denominator * model.offset
    reduced = [denominator * int(c) for c in model.objective]
    for row, multiplier in enumerate(numerators):
        total += multiplier * int(model.row_upper[row] if multiplier > 0 else model.row_lower[row])
        for entry in range(model.row_start[row], model.row_start[row + 1]):
            reduced[model.columns[entry]] -= multiplier * int(model.coefficients[entry])
    for value, low, high in zip(reduced, model.lower.tolist(), model.upper.tolist(), strict=True):
        total += max(value * low, value * high)
    return total // denominator


@pytest.mark.parametrize("size", [1, 2**12, 2**30])
def test_large_numbers_do_not_overflow(size: int) -> None:
    """Coefficients, bounds and multipliers whose products pass 2**64, against Python's integers."""
    rng = np.random.default_rng(size)
    for _ in range(30):
        n, m = int(rng.integers(1, 6)), int(rng.integers(1, 5))
        low, high = rng.integers(-1000, 0, n), rng.integers(0, 1000, n)
        matrix, least = rng.integers(-size, size + 1, (m, n)), rng.integers(-(2**40), 0, m)
        costs, offset = rng.integers(-size, size + 1, n).tolist(), int(rng.integers(-9, 9))
        drawn = model("max", costs, *((row, lower, 2**41) for row, lower in zip(matrix, least, strict=True)),
                      low=low, high=high, offset=offset)  # fmt: skip
        numerators = rng.integers(-size * 8, size * 8 + 1, m)
        bound = dual_bound(drawn, numerators / 8)
        assert bound == min(exact_bound(drawn, numerators.tolist(), 8), trivial_bound(drawn))


def test_coefficients_too_large_for_limbs_fall_back_to_the_trivial_bound() -> None:
    """There is always a bound, at worst the trivial one."""
    rows = [([2**52, 2**52 - 1], NO_LOWER, 2**52), *[([2**52 - 1, 0], -1, NO_UPPER)] * 200]
    assert dual_bound(model("max", [1, 1], *rows), np.full(201, 0.5)) == 2
