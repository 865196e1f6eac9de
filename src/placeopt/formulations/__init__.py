"""Formulations: a round as an integer linear model, and back."""

from placeopt.formulations.capacity_relaxation import build_capacity_relaxation
from placeopt.formulations.cost_relaxation.model import CapacityCut
from placeopt.formulations.exact import add_assignment, add_counts
from placeopt.formulations.gpu_patterns import build_gpu_patterns
from placeopt.formulations.placements import decode, encode
from placeopt.formulations.totals import bound_by_totals

__all__ = [
    "CapacityCut",
    "add_assignment",
    "add_counts",
    "bound_by_totals",
    "build_capacity_relaxation",
    "build_gpu_patterns",
    "decode",
    "encode",
]
