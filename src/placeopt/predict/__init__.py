"""Slowdowns that a round needs, fitted to measured pairs of jobs that shared a GPU."""

from placeopt.predict.fits import CurveModel, InterferenceModel, fit_curve, fit_interference, slowdowns_of
from placeopt.predict.fitted import Errors, Fitted, Provenance, check_lists, predicted_out_of_fold, relative_errors
from placeopt.predict.measured import Measured, Pair, gavel_pairs

__all__ = [
    "CurveModel",
    "Errors",
    "Fitted",
    "InterferenceModel",
    "Measured",
    "Pair",
    "Provenance",
    "check_lists",
    "fit_curve",
    "fit_interference",
    "gavel_pairs",
    "predicted_out_of_fold",
    "relative_errors",
    "slowdowns_of",
]
