"""SC'17's profile of interference: measured pairs, and what they say of pairs and jobs that were not measured (4.2)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import fmean

import numpy as np

from placeopt.errors import BadInput
from placeopt.model import Slowdown
from placeopt.predict import Errors, InterferenceModel, Measured, Pair, fit_interference, relative_errors, slowdowns_of
from placeopt.scheduling.predictions import PROFILE, Row, rows_by_profile
from placeopt.systems.predictors import number_in
from placeopt.systems.similar import Structure, most_similar

PAIR = (PROFILE, "beside", "ratio")
"""Columns of a pair; all others are features of the job of ``profile``."""
MILLI, FOLDS = 1000, 5


class PairModel(InterferenceModel):
    """Slowdowns of all pairs of measured jobs, and what is known of them."""

    structures: dict[str, dict[str, float]]
    """Every measured profile -> its features, where the table states them."""
    unseen: Errors | None
    """Of time beside / time alone in the pairs of each profile, predicted from those of all others; None: too few."""

    @property
    def held_out(self) -> str:
        """The error on profiles that were left out, as text."""
        return "" if self.unseen is None else f"mean error on jobs left out: {100 * self.unseen.mean:.1f} %"


def fit_pairs(rows: Sequence[Row], *, source: str, licence: str) -> PairModel:
    """Return slowdowns of all pairs of profiles; ``ratio``: rate beside the other over rate alone."""
    structures: dict[str, dict[str, float]] = {}
    for row in rows:
        features = {name: number_in(row, name) for name in row if name not in PAIR}
        if structures.setdefault(row[PROFILE], features) != features:
            raise BadInput(f"table: profile {row[PROFILE]!r}: features differ between its rows; a profile is one job")
    pairs = [Pair(row[PROFILE], row["beside"], number_in(row, "ratio")) for row in rows]
    structures |= {pair.beside: {} for pair in pairs if pair.beside not in structures}
    model = fit_interference("pairs", Measured(pairs, source=source, licence=licence))
    fitted = {name: getattr(model, name) for name in InterferenceModel.model_fields}
    return PairModel(**fitted, structures=structures, unseen=_unseen(pairs, structures))


def slowdowns(model: PairModel, rows: Sequence[Row], profiles: Sequence[str]) -> tuple[Slowdown, ...]:
    """
    Return the slowdowns of measured profiles and of ``profiles`` that are none.

    One that was never measured is as the measured one whose features are most similar to those in its row; without
    features in common as the mean of all.
    """
    by_profile = rows_by_profile(rows)
    new = [name for name in profiles if name not in model.structures]
    known = {name for features in model.structures.values() for name in features}
    stated = {
        name: {column: number_in(row, column) for column in sorted(known & row.keys())}
        for name in new
        if (row := by_profile.get(name)) is not None
    }
    stand_ins: dict[str, tuple[str, ...]] = {name: (name,) for name in model.structures}
    stand_ins |= {name: _stand_ins(stated.get(name, {}), model.structures) for name in new}
    excess = {(one.profile, one.beside): one.gpu_thousandths for one in model.slowdowns}
    found = (
        Slowdown(profile=one, beside=other, gpu_thousandths=round(_mean(excess, stand_ins[one], stand_ins[other])))
        for one in stand_ins
        for other in stand_ins
        if one in new or other in new
    )
    return (*model.slowdowns, *(one for one in found if one.gpu_thousandths))


def _stand_ins(features: Structure, known: Mapping[str, Structure]) -> tuple[str, ...]:
    """Return the measured profiles that stand for one that is not: the most similar, or all of them."""
    alike = {name: mine for name, mine in known.items() if features.keys() & mine.keys()}
    return (most_similar(features, alike),) if alike else tuple(known)


def _mean(excess: Mapping[tuple[str, str], int], ones: Sequence[str], others: Sequence[str]) -> float:
    return fmean(excess.get((one, other), 0) for one in ones for other in others)


def _unseen(pairs: Sequence[Pair], structures: Mapping[str, Structure]) -> Errors | None:
    """Return the errors on pairs with a profile that was left out, a fold of them after the other; None: no others."""
    fold = dict(zip(structures, np.random.default_rng(0).permutation(len(structures)) % FOLDS, strict=True))
    predicted, measured = [], []
    for left in range(FOLDS):
        rest = [pair for pair in pairs if left not in (fold[pair.profile], fold[pair.beside])]
        if not rest:
            return None
        known = {name: structures[name] for pair in rest for name in (pair.profile, pair.beside)}
        excess = {(one.profile, one.beside): one.gpu_thousandths for one in slowdowns_of(rest)}
        stand_ins = {name: (name,) if name in known else _stand_ins(structures[name], known) for name in structures}
        for one in pairs:
            if left in (fold[one.profile], fold[one.beside]):
                predicted.append(1 + _mean(excess, stand_ins[one.profile], stand_ins[one.beside]) / MILLI)
                measured.append(one.stretch)
    return relative_errors(predicted, measured)
