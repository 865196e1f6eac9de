"""
Fillings of units, mixed by one master.

A unit is a state of nodes, a column what one node of that state holds. The master counts jobs that start and columns
that nodes take; its prices say what a bundle is worth, and pricing finds the filling that pays more than all known ones
or proves that there is none. Any prices prove a bound, in integers.
"""

from placeopt.formulations.fillings.groups import BundleGroups, Starts, bundle_groups_of, starts_of
from placeopt.formulations.fillings.master import RELAXES, Master
from placeopt.formulations.fillings.pool import Column, Pool
from placeopt.formulations.fillings.pricing import NodePricing, Priced, Pricing
from placeopt.formulations.fillings.realise import requests_of
from placeopt.formulations.fillings.units import Units, units_of

__all__ = [
    "RELAXES",
    "BundleGroups",
    "Column",
    "Master",
    "NodePricing",
    "Pool",
    "Priced",
    "Pricing",
    "Starts",
    "Units",
    "bundle_groups_of",
    "requests_of",
    "starts_of",
    "units_of",
]
