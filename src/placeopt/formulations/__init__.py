"""Formulations: a round as an integer linear model, and back."""

from placeopt.formulations.capacity_relaxation import build_capacity_relaxation
from placeopt.formulations.cost_relaxation.model import CapacityCut
from placeopt.formulations.exact import add_assignment, add_counts
from placeopt.formulations.gpu_patterns import build_gpu_patterns
from placeopt.formulations.placements import decode, encode

__all__ = [
    "CapacityCut",
    "add_assignment",
    "add_counts",
    "build_capacity_relaxation",
    "build_gpu_patterns",
    "decode",
    "encode",
]
