"""How curves of many points are drawn."""

import pytest

from placeopt.report.html.curves import MOST_POINTS, grouped


def test_long_curves_keep_means_and_extremes() -> None:
    """Groups hold all points: the time-weighted mean of all, the least and the largest."""
    points = [(float(i), float(i % 7)) for i in range(10 * MOST_POINTS + 3)]
    at, low, mean, high = grouped(points)
    assert len(at) == MOST_POINTS
    assert (min(low), max(high), at[0]) == (0.0, 6.0, 0.0)
    lengths = [b - a for a, b in zip(at, [*at[1:], points[-1][0]], strict=True)]
    exact = sum(y for _, y in points[:-1])
    last = mean[-1] * lengths[-1] - sum(y for x, y in points[:-1] if x >= at[-1])  # the last is where the curve ends
    assert sum(m * n for m, n in zip(mean, lengths, strict=True)) - last == pytest.approx(exact)
