"""Figures against examples worked by hand."""

import pytest
from test_benchmark_report import row, tables_of

from placeopt.benchmark.metrics import (
    height_at,
    integral,
    penalised_average,
    performance_profile,
    primal_dual_gap,
    primal_gap,
    shifted_geometric_mean,
    steps,
)


def test_shifted_geometric_mean() -> None:
    """(0 + 1)(3 + 1)(8 + 1) = 36, its third root less 1. Shift 10: third root of 10 x 13 x 18, less 10."""
    assert shifted_geometric_mean([0, 3, 8], 1) == pytest.approx(2.301927, abs=1e-6)
    assert shifted_geometric_mean([0, 3, 8], 10) == pytest.approx(3.276144, abs=1e-6)
    assert shifted_geometric_mean([5], 1) == pytest.approx(5)
    assert shifted_geometric_mean([], 1) is None
    with pytest.raises(ValueError, match="above 0"):
        shifted_geometric_mean([-2], 1)


def test_penalised_averages() -> None:
    """4 s and 6 s solved, one not in 10 s: PAR2 (4 + 6 + 20) / 3 = 10, PAR10 (4 + 6 + 100) / 3 = 36.67."""
    assert penalised_average([4, 6, None], [10, 10, 10], 2) == pytest.approx(10)
    assert penalised_average([4, 6, None], [10, 10, 10], 10) == pytest.approx(110 / 3)
    assert penalised_average([None, None], [10, 5], 2) == pytest.approx(15)
    assert penalised_average([], [], 2) is None


@pytest.mark.parametrize(
    ("objective", "best", "gap"),
    [
        (80, 100, 0.2),
        (125, 100, 0.2),
        (100, 100, 0),
        (0, 0, 0),
        (0, 5, 1),
        (-5, 5, 1),
        (None, 5, 1),
        (-80, -100, 0.2),
        (3, None, 0),
    ],
)
def test_primal_gap(objective: int | None, best: int | None, gap: float) -> None:
    """|100 - 80| / 100 = 0.2, from either side: to be minimised, 125 against 100 is 25 / 125."""
    assert primal_gap(objective, best) == pytest.approx(gap)


def test_gap_of_objective_and_bound() -> None:
    """Missing either is 1."""
    assert primal_dual_gap(80, 100) == pytest.approx(0.2)
    assert primal_dual_gap(None, 100) == primal_dual_gap(80, None) == 1
    assert primal_dual_gap(7, 7) == 0


def test_integrals() -> None:
    """
    Gap 1 for 2 s, 0.5 for 3 s, 0 for 5 s: 3.5 s of 10.

    Nothing ever: all 10. What comes after the limit does not count: 1 for 2 s, 0.5 for the other 8, 6.
    """
    assert integral([(2, 0.5), (5, 0)], 10) == pytest.approx(3.5)
    assert integral([], 10) == 10
    assert integral([(2, 0.5), (12, 0)], 10) == pytest.approx(6)
    assert integral([(0, 0)], 10) == 0
    assert [height_at([(2, 0.5), (5, 0)], time) for time in (0, 2, 4.9, 5)] == [1, 0.5, 0.5, 0]


def test_performance_profile() -> None:
    """
    Four cases. A: 1, 4, 10, none. B: 2, 2, none, none. Best: 1, 2, 10, none.

    Ratios of A: 1, 2, 1, so 2 of 4 at 1 and 3 of 4 at 2; of B: 2, 1, so 1 of 4 at 1 and 2 of 4 at 2.
    """
    found = performance_profile({"A": [1, 4, 10, None], "B": [2, 2, None, None]})
    assert found == {"A": [(1.0, 0.5), (2.0, 0.75)], "B": [(1.0, 0.25), (2.0, 0.5)]}
    assert performance_profile({"A": [None]}) == {"A": [(1.0, 0.0)]}
    assert performance_profile({"A": [0.0], "B": [0.0005]}) == {"A": [(1.0, 1.0)], "B": [(1.0, 1.0)]}


def test_steps() -> None:
    """Shares of four values, of which only three are there."""
    assert steps([0.5, 0, 0.5], 4) == [(0.0, 0.25), (0.5, 0.75)]


def test_interval_of_a_coin() -> None:
    """
    Gaps of 0 and 20 points apart, nine each: a mean of 18 draws of a fair coin, whose 2.5 % and 97.5 % points are 5/18
    and 13/18.

    P(at most 4 of 18) = 1.5 %, P(at most 5) = 4.8 %, so the 2.5 % point is 5 of 18. The same seed draws the same.
    """
    rows = []
    for i in range(18):
        rows.append(row(f"i{i:02}", "good", wall=10, objective=100, bound=100, verdict="solved"))
        rows.append(row(f"i{i:02}", "coin", wall=10, objective=125 if i % 2 else 100, bound=80))
    [line] = tables_of(rows, baseline="good")["comparison"].rows
    assert line[5:8] == pytest.approx((10, 20 * 5 / 18, 20 * 13 / 18))
    assert tables_of(rows, baseline="good")["comparison"].rows == (line,)
