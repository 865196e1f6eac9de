"""Slowdown of one job type beside another: measured pairs, and a fit for those that were never measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from placeopt.errors import BadInput
from placeopt.model import Slowdown
from placeopt.predict.fitted import Fitted, predicted_out_of_fold, relative_errors
from placeopt.predict.measured import Measured

MOST_THOUSANDTHS = 1_000_000


class InterferenceModel(Fitted):
    """
    Excess e(j, k) = time beside k / time alone - 1 of pairs that share a GPU.

    ``log(1 + e(j, k)) = sensitivity of j + pressure of k``, by least squares over the measured pairs: the simplest form
    in which a type that was measured beside some predicts it beside others. ``errors`` are of 1 + e, over pairs left
    out of the fit one fold after the other.
    """

    profiles: tuple[str, ...]
    sensitivity: tuple[float, ...]
    pressure: tuple[float, ...]
    measured: tuple[tuple[int, int, float], ...]
    """(j, k, e(j, k)): positions in ``profiles``."""

    def excess(self, profile: str, beside: str) -> float:
        """Return the measured excess, else the predicted one, at least 0; raises ``BadInput`` for unknown profiles."""
        for name in (profile, beside):
            if name not in self.profiles:
                raise BadInput(f"profile {name!r}: not among the {len(self.profiles)} that were measured")
        j, k = self.profiles.index(profile), self.profiles.index(beside)
        known = self._known.get((j, k))
        return known if known is not None else max(0.0, float(np.exp(self.sensitivity[j] + self.pressure[k])) - 1)

    def slowdowns(self, profiles: Sequence[str]) -> tuple[Slowdown, ...]:
        """Return an instance's table for pairs of ``profiles`` on one GPU; pairs that cost nothing are left out."""
        excess = {(j, k): round(1000 * self.excess(j, k)) for j in profiles for k in profiles}
        return tuple(
            Slowdown(profile=j, beside=k, gpu_thousandths=min(thousandths, MOST_THOUSANDTHS))
            for (j, k), thousandths in excess.items()
            if thousandths
        )

    @cached_property
    def _known(self) -> Mapping[tuple[int, int], float]:
        return {(j, k): excess for j, k, excess in self.measured}


def fit_interference(name: str, measured: Measured, *, folds: int = 5, seed: int = 0) -> InterferenceModel:
    """
    Fit sensitivities and pressures; a pair that was measured several times counts with its mean.

    Parameters
    ----------
    name
        Stored in the model.
    measured
        The pairs, their source, and what was left out.
    folds, seed
        Of the cross-validation.

    Returns
    -------
    InterferenceModel
        Sensitivity and pressure of every profile, and the errors of the cross-validation.

    Raises
    ------
    BadInput
        If there are fewer pairs than folds.
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
        """Return sensitivities and pressures, shape (2, profiles): of least norm, so unmeasured pairs stay moderate."""
        factors = np.hstack([np.eye(len(profiles))[j[rows]], np.eye(len(profiles))[k[rows]]])
        found: np.ndarray = np.linalg.lstsq(factors, np.log(stretch[rows]), rcond=None)[0].reshape(2, -1)
        return found

    def predict(fitted: np.ndarray, left: np.ndarray) -> np.ndarray:
        suffered, caused = fit(fitted)
        stretched: np.ndarray = np.maximum(1.0, np.exp(suffered[j[left]] + caused[k[left]]))
        return stretched

    predicted = predicted_out_of_fold(len(stretch), folds, seed, predict)
    sensitivity, pressure = fit(np.ones(len(stretch), dtype=bool)).tolist()
    return InterferenceModel(
        name=name,
        provenance=measured.provenance,
        errors=relative_errors(predicted, stretch),
        profiles=tuple(profiles),
        sensitivity=tuple(sensitivity),
        pressure=tuple(pressure),
        measured=tuple(zip(j.tolist(), k.tolist(), (stretch - 1).tolist(), strict=True)),
    )
