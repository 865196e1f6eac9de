"""SC'17's profile of interference: measured pairs, and what they say of pairs that were not measured (4.3)."""

from __future__ import annotations

from collections.abc import Sequence

from placeopt.predict import InterferenceModel, Measured, Pair, fit_interference
from placeopt.scheduling.predictions import PROFILE, Row
from placeopt.systems.predictors import number_in


def fit_pairs(rows: Sequence[Row], *, source: str, licence: str) -> InterferenceModel:
    """Return slowdowns of all pairs of profiles; ``ratio``: rate beside the other over rate alone."""
    pairs = [Pair(row[PROFILE], row["beside"], number_in(row, "ratio")) for row in rows]
    return fit_interference("pairs", Measured(pairs, source=source, licence=licence))
