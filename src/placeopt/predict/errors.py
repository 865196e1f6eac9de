"""Errors of predictions against measurements."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placeopt.errors import BadInput
from placeopt.model.base import Record


class Errors(Record):
    """Relative errors |predicted - measured| / measured over ``count`` pairs."""

    count: int
    mean: float
    median: float
    p95: float
    worst: float

    def __str__(self) -> str:
        """Return the errors in percent as text."""
        return (
            f"{self.count} pairs, relative error: mean {100 * self.mean:.1f} %, median {100 * self.median:.1f} %, "
            f"95th percentile {100 * self.p95:.1f} %, worst {100 * self.worst:.0f} %"
        )


def relative_errors(predicted: Sequence[float] | np.ndarray, measured: Sequence[float] | np.ndarray) -> Errors:
    """
    Return the relative errors of predictions.

    Parameters
    ----------
    predicted, measured
        Shape (n,), one unit; measurements above 0.

    Raises
    ------
    BadInput
        If there are none, their numbers differ, or a measurement is not above 0.
    """
    p, m = _pair(predicted, measured)
    if (m <= 0).any():
        raise BadInput(f"measured: {m.min()}; a relative error needs measurements above 0")
    off = np.abs(p - m) / m
    return Errors(
        count=len(off),
        mean=float(off.mean()),
        median=float(np.median(off)),
        p95=float(np.percentile(off, 95)),
        worst=float(off.max()),
    )


def rmsle(predicted: Sequence[float] | np.ndarray, measured: Sequence[float] | np.ndarray) -> float:
    """
    Return the root mean square of log(1 + predicted) - log(1 + measured); predictions below 0 count as 0.

    Source: Horus 4.1.1, which names the measure and no formula; this is the usual one, with the natural logarithm.
    """
    p, m = _pair(predicted, measured)
    if (m < 0).any():
        raise BadInput(f"measured: {m.min()}; a logarithmic error needs measurements of at least 0")
    return float(np.sqrt(((np.log1p(p.clip(min=0)) - np.log1p(m)) ** 2).mean()))


def _pair(predicted: Sequence[float] | np.ndarray, measured: Sequence[float] | np.ndarray) -> tuple[np.ndarray, ...]:
    p, m = np.asarray(predicted, dtype=float), np.asarray(measured, dtype=float)
    if p.shape != m.shape or p.ndim != 1 or not len(p):
        raise BadInput(f"predicted and measured: shapes {p.shape} and {m.shape}; expected two equal lists, not empty")
    return p, m
