"""Fits of the papers that no call of placeopt uses: rates, steps, utilisation of ONNX models, memory; and errors."""

from placeopt_papers.predict.errors import rmsle
from placeopt_papers.predict.memory import gpu_memory_mib
from placeopt_papers.predict.onnx_file import onnx_features
from placeopt_papers.predict.profiles import lightweight, sia_runs
from placeopt_papers.predict.rate import ProfiledRun, RateModel, check_runs, fit_rate
from placeopt_papers.predict.regressor import REGRESSORS, Regressor, cross_validated, fit_regressor
from placeopt_papers.predict.step import StepModel, fit_step

__all__ = [
    "REGRESSORS",
    "ProfiledRun",
    "RateModel",
    "Regressor",
    "StepModel",
    "check_runs",
    "cross_validated",
    "fit_rate",
    "fit_regressor",
    "fit_step",
    "gpu_memory_mib",
    "lightweight",
    "onnx_features",
    "rmsle",
    "sia_runs",
]
