"""Slowdown of one job type beside another: measured pairs, and a fit for those that were never measured."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from placeopt.documents.bounds import parse_json
from placeopt.errors import BadInput
from placeopt.model import Slowdown
from placeopt.predict.fitted import Fitted, Provenance, predicted_out_of_fold, relative_errors

LEAST_RATIO = 1e-3
"""Ratios up to this are left out: the job starved, so the rate is not a measurement of interference."""
MOST_THOUSANDTHS = 1_000_000
_NAME = re.compile(r"\(.+, ([1-9][0-9]{0,4})\)", re.DOTALL)
ZEROS = "of zeros: not runnable together, or never measured"
SEVERAL = "of jobs of several GPUs"
NO_RATE = "of a job without a rate alone"
ODD = "with a name that is not a job"


class Pair(NamedTuple):
    """A job of ``profile`` beside one job of ``beside`` on one GPU; ``ratio``: its rate there over its rate alone."""

    profile: str
    beside: str
    ratio: float


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
            if name not in self._position:
                raise BadInput(f"profile {name!r}: not among the {len(self.profiles)} that were measured")
        j, k = self._position[profile], self._position[beside]
        known = self._known.get((j, k))
        return known if known is not None else max(0.0, float(np.exp(self.sensitivity[j] + self.pressure[k])) - 1)

    def slowdowns(self, profiles: Sequence[str]) -> tuple[Slowdown, ...]:
        """Return an instance's table for pairs of ``profiles`` on one GPU; pairs that cost nothing are left out."""
        out = []
        for j in profiles:
            for k in profiles:
                thousandths = min(round(1000 * self.excess(j, k)), MOST_THOUSANDTHS)
                if thousandths:
                    out.append(Slowdown(profile=j, beside=k, gpu_thousandths=thousandths))
        return tuple(out)

    @cached_property
    def _position(self) -> Mapping[str, int]:
        return {name: i for i, name in enumerate(self.profiles)}

    @cached_property
    def _known(self) -> Mapping[tuple[int, int], float]:
        return {(j, k): excess for j, k, excess in self.measured}


def gavel_pairs(text: str, worker: str, *, where: str = "throughputs") -> tuple[list[Pair], dict[str, int]]:
    """
    Return the pairs of one worker type from Gavel's throughput file, of jobs of one GPU.

    A job is named ``('ResNet-18 (batch size 16)', 1)``, with its number of GPUs; a name without a number, as in Gavel's
    first files, is of a job of one GPU.

    Returns
    -------
    tuple of list of Pair and dict
        The pairs, both directions of each, and how many were left out by reason: `ZEROS`, `SEVERAL`, `NO_RATE`, `ODD`.

    Raises
    ------
    BadInput
        If the file has another form or no such worker type, or no pair can be read; counts the pairs left out.
    """
    left: Counter[str] = Counter()
    pairs = []
    try:
        table: dict[str, dict[str, Any]] = parse_json(text, where)[worker]
        alone = {name: _rate(row["null"]) for name, row in table.items() if _gpus(name) == 1 and "null" in row}
        for name, row in table.items():
            for other, rates in row.items():
                if other == "null":
                    continue
                both = {_gpus(name), _gpus(other)}
                if both != {1}:
                    left[ODD if 0 in both else SEVERAL] += 1
                    continue
                if name not in alone or other not in alone:
                    left[NO_RATE] += 1
                    continue
                solo = (alone[name], alone[other])
                ratios = [_rate(rate) / own if own > 0 else 0.0 for rate, own in zip(rates, solo, strict=True)]
                if min(ratios) <= LEAST_RATIO:
                    left[ZEROS] += 1
                    continue
                pairs.append(Pair(name, other, ratios[0]))
                pairs.append(Pair(other, name, ratios[1]))
    except (KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise BadInput(
            f"{where}, worker type {worker!r}: {type(error).__name__}: {error}; expected "
            '{worker: {job: {"null": rate, other: [rate, rate of other]}}}'
        ) from error
    if not pairs:
        counts = ", ".join(f"{count} {reason}" for reason, count in left.items()) or "there is none"
        raise BadInput(f"{where}, worker type {worker!r}: no pair of jobs of one GPU could be read; pairs: {counts}")
    return pairs, dict(left)


def _gpus(name: str) -> int:
    """Return the number of GPUs that a job's name states: 1 where it is a plain name, 0 where that is none."""
    match = _NAME.fullmatch(name)
    if match is not None:
        return int(match[1])
    return 0 if name.startswith("(") or not name.strip() else 1


def _rate(value: Any) -> float:
    rate = float(value)  # what is not a number raises TypeError, which the caller reports
    if not 0 <= rate < float("inf"):
        raise ValueError(f"a rate of {rate}")
    return rate


def fit_interference(
    name: str,
    pairs: Sequence[Pair],
    *,
    source: str,
    licence: str = "",
    left_out: Mapping[str, int] | None = None,
    folds: int = 5,
    seed: int = 0,
) -> InterferenceModel:
    """
    Fit sensitivities and pressures; a pair that was measured several times counts with its mean.

    Parameters
    ----------
    name, source, licence
        Stored in the model.
    pairs
        With ratios above 0. A ratio above 1 counts as no slowdown.
    left_out
        Pairs that the reader left out, for the record: counts by reason.
    folds, seed
        Folds and seed of the cross-validation.

    Returns
    -------
    InterferenceModel
        Sensitivity and pressure of every profile, and the errors of fit and cross-validation.

    Raises
    ------
    BadInput
        If there are fewer pairs than folds, or a ratio is not above 0.
    """
    check_pairs(pairs)
    times: dict[tuple[str, str], list[float]] = {}
    for pair in pairs:
        times.setdefault((pair.profile, pair.beside), []).append(max(1.0, 1 / pair.ratio))
    if len(times) < folds:
        raise BadInput(f"pairs: {len(times)} different ones; expected at least {folds}, one for each fold")
    profiles = sorted({name for key in times for name in key})
    position = {name: i for i, name in enumerate(profiles)}
    j, k = (np.array([position[key[side]] for key in times]) for side in (0, 1))
    stretch = np.array([float(np.mean(values)) for values in times.values()])

    def predict(fitted: np.ndarray, left: np.ndarray) -> np.ndarray:
        suffered, caused = _solve(j[fitted], k[fitted], stretch[fitted], len(profiles))
        stretched: np.ndarray = np.maximum(1.0, np.exp(suffered[j[left]] + caused[k[left]]))
        return stretched

    predicted = predicted_out_of_fold(len(stretch), folds, seed, predict)
    sensitivity, pressure = _solve(j, k, stretch, len(profiles))
    return InterferenceModel(
        name=name,
        provenance=provenance_of(pairs, source, licence, left_out),
        errors=relative_errors(predicted, stretch),
        profiles=tuple(profiles),
        sensitivity=tuple(sensitivity.tolist()),
        pressure=tuple(pressure.tolist()),
        measured=tuple(zip(j.tolist(), k.tolist(), (stretch - 1).tolist(), strict=True)),
    )


def provenance_of(pairs: Sequence[Pair], source: str, licence: str, left_out: Mapping[str, int] | None) -> Provenance:
    """Return the record of the data; ``left_out``: pairs that were left out by reason."""
    reasons = left_out or {}
    counted = [f"{count} {reason}" for reason, count in reasons.items() if count]
    return Provenance(
        source=source,
        licence=licence,
        rows=len(pairs),
        left_out=sum(reasons.values()),
        why_left_out=f"pairs: {'; '.join(counted)}" if counted else "",
    )


def check_pairs(pairs: Sequence[Pair]) -> None:
    """Raise ``BadInput`` with the first impossible ratio."""
    for pair in pairs:
        if not 0 < pair.ratio < float("inf"):
            raise BadInput(
                f"pair {pair.profile!r} beside {pair.beside!r}: a ratio of {pair.ratio}; expected above 0; leave out "
                "pairs that were not measured, or could not run together"
            )


def _solve(j: np.ndarray, k: np.ndarray, stretch: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the least-squares solution of the logarithms; the one of least norm, so unmeasured pairs stay moderate."""
    a = np.zeros((len(j), 2 * n))
    a[np.arange(len(j)), j] = 1
    a[np.arange(len(j)), n + k] = 1
    x = np.linalg.lstsq(a, np.log(stretch), rcond=None)[0]
    return x[:n], x[n:]
