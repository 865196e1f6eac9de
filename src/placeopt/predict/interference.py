"""Slowdown of one job type beside another: measured pairs, and a fit for those that were never measured."""

from __future__ import annotations

import numpy as np

from placeopt.errors import BadInput
from placeopt.model import Slowdown
from placeopt.predict.fitted import Fitted, predicted_out_of_fold, relative_errors
from placeopt.predict.measured import Measured

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
    Return the slowdowns of all pairs of the measured profiles; one that was measured several times has its mean.

    ``name`` is stored in the model; ``folds`` are those of the cross-validation. Raises ``BadInput`` if there are fewer
    pairs than folds.
    """
    times: dict[tuple[str, str], list[float]] = {}
    for pair in measured.pairs:
        times.setdefault((pair.profile, pair.beside), []).append(pair.stretch)
    if len(times) < folds:
        raise BadInput(f"pairs: {len(times)} different ones; expected at least {folds}, one for each fold")
    profiles = sorted({name for key in times for name in key})
    j, k = (np.array([profiles.index(key[side]) for key in times]) for side in (0, 1))
    stretch = np.array([float(np.mean(values)) for values in times.values()])

    def fit(rows: np.ndarray) -> np.ndarray:
        """Return 1 + e of all pairs, shape (profiles, profiles): of least norm, so unmeasured pairs stay moderate."""
        each = np.eye(len(profiles))
        factors = np.hstack([each[j[rows]], each[k[rows]]])
        sensitivity, pressure = np.linalg.lstsq(factors, np.log(stretch[rows]), rcond=None)[0].reshape(2, -1)
        found: np.ndarray = np.maximum(1.0, np.exp(sensitivity[:, None] + pressure[None, :]))
        return found

    predicted = predicted_out_of_fold(len(stretch), folds, lambda fitted, left: fit(fitted)[j[left], k[left]])
    table = fit(np.ones(len(stretch), dtype=bool))
    table[j, k] = stretch
    excess = np.rint(1000 * (table - 1)).astype(np.int64).clip(max=MOST_THOUSANDTHS)
    return InterferenceModel(
        name=name,
        provenance=measured.provenance,
        errors=relative_errors(predicted, stretch),
        slowdowns=tuple(
            Slowdown(profile=profiles[a], beside=profiles[b], gpu_thousandths=int(excess[a, b]))
            for a, b in np.argwhere(excess).tolist()
        ),
    )
