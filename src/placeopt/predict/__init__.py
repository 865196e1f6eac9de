"""Predictions that a round needs: rates, memory, utilisation, interference, cores; fitted from measured profiles."""

from placeopt.predict.curve import CurveModel, fit_curve
from placeopt.predict.fitted import Errors, Fitted, Provenance, read_fitted, relative_errors, rmsle, write_fitted
from placeopt.predict.interference import InterferenceModel, Pair, fit_interference, gavel_pairs
from placeopt.predict.onnx_file import onnx_features
from placeopt.predict.rate import ProfiledRun, RateModel, StepModel, fit_rate, fit_step, lightweight, sia_runs
from placeopt.predict.regressor import REGRESSORS, Regressor, cross_validated, fit_regressor
from placeopt.predict.resources import Category, best_fit_cores, first_cores, gpu_memory_mib

__all__ = [
    "REGRESSORS",
    "Category",
    "CurveModel",
    "Errors",
    "Fitted",
    "InterferenceModel",
    "Pair",
    "ProfiledRun",
    "Provenance",
    "RateModel",
    "Regressor",
    "StepModel",
    "best_fit_cores",
    "cross_validated",
    "first_cores",
    "fit_curve",
    "fit_interference",
    "fit_rate",
    "fit_regressor",
    "fit_step",
    "gavel_pairs",
    "gpu_memory_mib",
    "lightweight",
    "onnx_features",
    "read_fitted",
    "relative_errors",
    "rmsle",
    "sia_runs",
    "write_fitted",
]
