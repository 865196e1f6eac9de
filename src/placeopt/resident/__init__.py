"""A cluster that stays: its records, its compiled parts, decisions for single jobs, and what a plan changes in it."""

from placeopt.resident.residence import Residence

__all__ = ["Residence"]
