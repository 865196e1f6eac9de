"""Fitted models, records that state their source, and their errors against measurements."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from placeopt.errors import BadInput
from placeopt.model.base import FormatVersion, Record


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


class Provenance(Record):
    """The data of a fit: source and licence, rows used, and rows left out with the reason."""

    source: str
    licence: str = ""
    rows: int
    left_out: int = 0
    why_left_out: str = ""


class Fitted(Record):
    """Base of all fitted models."""

    format_version: FormatVersion = 2
    name: str
    provenance: Provenance
    errors: Errors
    """Errors on the rows of the fit, unless the model states otherwise."""

    @property
    def held_out(self) -> str:
        """What else was measured on rows that were left out of the fit, as text; empty: nothing."""
        return ""


def relative_errors(predicted: Sequence[float] | np.ndarray, measured: Sequence[float] | np.ndarray) -> Errors:
    """
    Return the relative errors of predictions, shape (n,) as the measurements, in one unit.

    Raises ``BadInput`` if there are none, their numbers differ, or a measurement is not above 0.
    """
    p, m = check_lists(predicted, measured)
    if (m <= 0).any():
        raise BadInput(f"measured: {m.min()}; a relative error needs measurements above 0")
    off = np.abs(p - m) / m
    mean, median, p95, worst = (
        float(f(off)) for f in (np.mean, np.median, lambda each: np.percentile(each, 95), np.max)
    )
    return Errors(count=len(off), mean=mean, median=median, p95=p95, worst=worst)


def check_lists(
    predicted: Sequence[float] | np.ndarray, measured: Sequence[float] | np.ndarray
) -> tuple[np.ndarray, ...]:
    """Return predictions and measurements as arrays of one length; raises ``BadInput`` where they are none."""
    p, m = np.asarray(predicted, dtype=float), np.asarray(measured, dtype=float)
    if p.shape != m.shape or p.ndim != 1 or not len(p):
        raise BadInput(f"predicted and measured: shapes {p.shape} and {m.shape}; expected two equal lists, not empty")
    return p, m


def predicted_out_of_fold(
    count: int, folds: int, predict: Callable[[np.ndarray, np.ndarray], np.ndarray], *, seed: int = 0
) -> np.ndarray:
    """
    Return the prediction of every row by a fit without its fold, shape ``(count,)``.

    ``predict(fitted, left_out)`` gets two masks of rows, fits to the first and predicts the second.
    """
    fold = np.random.default_rng(seed).permutation(count) % folds
    predicted = np.empty(count)
    for f in range(folds):
        predicted[fold == f] = predict(fold != f, fold == f)
    return predicted
