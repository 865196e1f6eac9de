"""Predictions that a round needs: rates, interference, cores; fitted from measured profiles."""

from placeopt.predict.curve import CurveModel, fit_curve
from placeopt.predict.fitted import (
    Errors,
    Fitted,
    Provenance,
    check_lists,
    predicted_out_of_fold,
    read_fitted,
    relative_errors,
    write_fitted,
)
from placeopt.predict.interference import InterferenceModel, Pair, fit_interference, gavel_pairs
from placeopt.predict.rate import ProfiledRun, RateModel, check_runs, fit_rate

__all__ = [
    "CurveModel",
    "Errors",
    "Fitted",
    "InterferenceModel",
    "Pair",
    "ProfiledRun",
    "Provenance",
    "RateModel",
    "check_lists",
    "check_runs",
    "fit_curve",
    "fit_interference",
    "fit_rate",
    "gavel_pairs",
    "predicted_out_of_fold",
    "read_fitted",
    "relative_errors",
    "write_fitted",
]
