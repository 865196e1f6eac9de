"""Spreads, fairness and intervals against figures worked by hand or printed in tables."""

from math import sqrt
from statistics import stdev

import pytest

from placeopt.simulation import bootstrap_interval, distribution_of, jain_index, paired_interval, t_interval


def test_spread_by_hand() -> None:
    """1 to 5: the 95th percentile lies 0.8 of the way from 4 to 5."""
    found = distribution_of([5, 1, 4, 2, 3])
    assert found is not None
    assert (found.mean, found.median, found.p95, found.max) == (3, 3, pytest.approx(4.8), 5)
    assert distribution_of([]) is None


@pytest.mark.parametrize(
    ("shares", "index"), [([1, 1, 4], 36 / 54), ([0, 7, 0, 0], 0.25), ([3, 3], 1), ([0, 0], 1), ([], None)]
)
def test_jain_by_hand(shares: list[int], index: float | None) -> None:
    """(1 + 1 + 4)^2 / (3 x 18); one who has all of four: 1/4; nobody has anything: all alike."""
    assert jain_index(shares) == (None if index is None else pytest.approx(index))


@pytest.mark.parametrize(
    ("freedom", "confidence", "printed"),
    [(1, 0.95, 12.706), (2, 0.95, 4.303), (4, 0.95, 2.776), (9, 0.95, 2.262), (30, 0.95, 2.042), (9, 0.99, 3.250)],
)
def test_t_quantiles_as_printed_in_tables(freedom: int, confidence: float, printed: float) -> None:
    """Any textbook's table of Student's t: half the interval's width over deviation / sqrt(n), about the mean."""
    values = list(range(freedom + 1))
    found = t_interval(values, confidence)
    assert found is not None
    spread = stdev(values) / sqrt(len(values))
    assert (found.high - found.mean) / spread == pytest.approx(printed, abs=0.0006)
    assert found.high - found.mean == pytest.approx(found.mean - found.low)
    assert found.mean == freedom / 2


def test_pairs_separate_what_single_values_cannot() -> None:
    """Seeds differ by tens, the two policies by 1 each time."""
    apart = paired_interval([11.0, 52.1, 93.2], [10.1, 51.0, 92.2])
    assert apart is not None
    assert apart.low > 0
    with pytest.raises(ValueError, match="zip"):
        paired_interval([1, 2], [1])


def test_bootstrap_is_repeatable_and_near_the_t_interval() -> None:
    """Of 50 values of one kind both say nearly the same; one value has no interval."""
    values = [float((7 * i) % 50) for i in range(50)]
    found, by_t = bootstrap_interval(values), t_interval(values)
    assert found is not None
    assert by_t is not None
    assert found == bootstrap_interval(values)
    assert (found.low, found.high) == pytest.approx((by_t.low, by_t.high), abs=0.5)
    assert bootstrap_interval([1.0]) is t_interval([1]) is None
