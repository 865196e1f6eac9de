"""Formulations: a round as an integer linear model, and back."""

from placeopt.formulations.assignment import add_assignment
from placeopt.formulations.exact import add_counts
from placeopt.formulations.placements import decode
from placeopt.formulations.encode import encode

__all__ = ["add_assignment", "add_counts", "decode", "encode"]
