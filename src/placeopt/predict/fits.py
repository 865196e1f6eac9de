"""Slowdowns fitted to measured pairs of jobs that shared a GPU: a table by job types, and a curve by utilisation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from placeopt.errors import BadInput
from placeopt.model import Slowdown
from placeopt.model.policy import SlowdownCurve
from placeopt.predict.fitted import Fitted, predicted_out_of_fold, relative_errors
from placeopt.predict.measured import Measured, Pair

Floats = NDArray[np.float64]
MOST_THOUSANDTHS = 1_000_000


class InterferenceModel(Fitted):
    """
    Excess e(j, k) = time beside k / time alone - 1 of pairs that share a GPU: measured, else predicted.

    ``log(1 + e(j, k)) = sensitivity of j + pressure of k``, by least squares over the measured pairs: the simplest form
    in which a type that was measured beside some predicts it beside others. ``errors`` are of 1 + e, over pairs left
    out of the fit one fold after the other.
    """

    slowdowns: tuple[Slowdown, ...]
    """Of all profiles, as an instance takes them; pairs that cost nothing are left out."""


def fit_interference(name: str, measured: Measured, *, folds: int = 5) -> InterferenceModel:
    """
    Fit sensitivities and pressures; a pair that was measured several times counts with its mean.

    Parameters
    ----------
    name
        Stored in the model.
    measured
        The pairs, their source, and what was left out.
    folds
        Of the cross-validation.

    Returns
    -------
    InterferenceModel
        Slowdowns of all pairs of the measured profiles, and the errors of the cross-validation.

    Raises
    ------
    BadInput
        If there are fewer pairs than folds.
    """
    profiles, j, k, stretch = _sides(measured.pairs)
    if len(stretch) < folds:
        raise BadInput(f"pairs: {len(stretch)} different ones; expected at least {folds}, one for each fold")

    def predict(fitted: NDArray[np.bool_], left: NDArray[np.bool_]) -> Floats:
        found: Floats = _table(len(profiles), j[fitted], k[fitted], stretch[fitted])[j[left], k[left]]
        return found

    return InterferenceModel(
        name=name,
        provenance=measured.provenance,
        errors=relative_errors(predicted_out_of_fold(len(stretch), folds, predict), stretch),
        slowdowns=slowdowns_of(measured.pairs),
    )


def slowdowns_of(pairs: Sequence[Pair]) -> tuple[Slowdown, ...]:
    """Return the slowdowns of all pairs of the profiles in some measured ones, as `fit_interference` fits them."""
    profiles, j, k, stretch = _sides(pairs)
    table = _table(len(profiles), j, k, stretch)
    table[j, k] = stretch
    excess = np.rint(1000 * (table - 1)).astype(np.int64).clip(max=MOST_THOUSANDTHS)
    return tuple(
        Slowdown(profile=profiles[a], beside=profiles[b], gpu_thousandths=int(excess[a, b]))
        for a, b in np.argwhere(excess).tolist()
    )


def _sides(pairs: Sequence[Pair]) -> tuple[list[str], NDArray[np.int64], NDArray[np.int64], Floats]:
    """Return the profiles, and of each different pair both as indices of these, and its mean stretch."""
    times: dict[tuple[str, str], list[float]] = {}
    for pair in pairs:
        times.setdefault((pair.profile, pair.beside), []).append(pair.stretch)
    profiles = sorted({name for key in times for name in key})
    index = {name: number for number, name in enumerate(profiles)}
    j, k = (np.array([index[key[side]] for key in times]) for side in (0, 1))
    return profiles, j, k, np.array([float(np.mean(values)) for values in times.values()])


def _table(count: int, j: NDArray[np.int64], k: NDArray[np.int64], stretch: Floats) -> Floats:
    """Return 1 + e of all pairs, shape (profiles, profiles): of least norm, so unmeasured pairs stay moderate."""
    each = np.eye(count)
    factors = np.hstack([each[j], each[k]])
    sensitivity, pressure = np.linalg.lstsq(factors, np.log(stretch), rcond=None)[0].reshape(2, -1)
    found: Floats = np.maximum(1.0, np.exp(sensitivity[:, None] + pressure[None, :]))
    return found


class CurveModel(Fitted):
    """
    Slowdown s(x) by the cumulative utilisation x of a GPU, a fraction (Horus fig. 4).

    ``s(x) = 1 + (f(1) - 1) x`` up to full use, ``s(x) = f(x) = a x^2 + b x + c`` above, as in the cost term. ``errors``
    are of s, over pairs left out of the fit one fold after the other.
    """

    curve: SlowdownCurve
    """As ``policy.interference.curve`` and a scenario's ``physics.curve`` take it."""
    most: float
    """Largest joint utilisation that was measured; the curve extrapolates beyond it."""


def fit_curve(name: str, measured: Measured, utilisation_percent: Mapping[str, float], *, folds: int = 5) -> CurveModel:
    """
    Fit a curve to pairs of jobs that shared a GPU, by least squares of the relative error.

    Parameters
    ----------
    name, measured, folds
        As of `fit_interference`.
    utilisation_percent
        Utilisation of a GPU by each profile alone, 0 to 100; a pair's x is the sum of both.

    Returns
    -------
    CurveModel
        The curve, and the errors of the cross-validation.

    Raises
    ------
    BadInput
        If there are fewer pairs than folds, or a profile's utilisation is missing or none.

    Notes
    -----
    Horus prints its fits without the method. Here coefficients are at least 0, which the bounds on its cost need; the
    published ones have a b of -0.003 and -0.007. A curve below 1 at full use is lifted to 1.
    """
    pairs = measured.pairs
    if len(pairs) < folds:
        raise BadInput(f"pairs: {len(pairs)}; expected at least {folds}, one for each fold")
    for profile in (profile for pair in pairs for profile in (pair.profile, pair.beside)):
        percent = utilisation_percent.get(profile)
        if percent is None or not 0 <= percent <= 100:
            raise BadInput(f"utilisation_percent of {profile!r}: {percent}; expected 0 to 100")
    x = np.array([utilisation_percent[pair.profile] + utilisation_percent[pair.beside] for pair in pairs]) / 100
    s, factors, beside = np.array([pair.stretch for pair in pairs]), *_terms(x)

    def fit(rows: NDArray[np.bool_]) -> Floats:
        """Return a, b, c: lifted to 1 at full use."""
        from scipy.optimize import nnls  # loaded where a model is fitted: it takes longer than all else of this package

        coefficients: Floats = nnls(factors[rows] / s[rows, None], (s - beside)[rows] / s[rows])[0]
        coefficients[2] += max(0.0, 1 - coefficients.sum())
        return coefficients

    predicted = predicted_out_of_fold(len(s), folds, lambda fitted, left: factors[left] @ fit(fitted) + beside[left])
    a, b, c = np.rint(1e6 * fit(np.ones(len(s), dtype=bool))).astype(np.int64).tolist()
    curve = SlowdownCurve(square_millionths=a, linear_millionths=b, constant_millionths=max(c, 1_000_000 - a - b))
    errors = relative_errors(predicted, s)
    return CurveModel(name=name, provenance=measured.provenance, errors=errors, curve=curve, most=float(x.max()))


def _terms(x: Floats) -> tuple[Floats, Floats]:
    """Return the factors of a, b, c in s(x), shape (rows, 3), and the constant part, shape (rows,)."""
    line = (x <= 1)[:, None]
    return np.where(line, x[:, None], np.stack([x * x, x, np.ones(len(x))], axis=1)), np.where(x <= 1, 1 - x, 0.0)
