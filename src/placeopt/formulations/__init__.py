"""Formulations: a round as an integer linear model, and back."""

from placeopt.formulations.exact import add_assignment, add_counts
from placeopt.formulations.placements import decode, encode

__all__ = ["add_assignment", "add_counts", "decode", "encode"]
