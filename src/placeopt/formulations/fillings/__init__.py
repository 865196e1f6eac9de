"""
Fillings of units, mixed by one master.

A unit is a state of nodes, a column what one node of that state holds. The master counts jobs that start and columns
that nodes take; its prices say what a bundle is worth, and pricing finds the filling that pays more than all known ones
or proves that there is none. Any prices prove a bound, in integers.

For the value a unit is a node, and pricing counts all its amounts. For the cost of plans of a value a unit is a part of
a node in which jobs disturb each other, and pricing counts what they cost each other there.
"""

from placeopt.formulations.fillings.cost_mix import COST_RELAXES, COUNTED, CostMix
from placeopt.formulations.fillings.cost_plan import plan_of
from placeopt.formulations.fillings.disturbance import Disturbance, disturbance_of
from placeopt.formulations.fillings.gangs import gang_paths
from placeopt.formulations.fillings.grid import GridBound
from placeopt.formulations.fillings.groups import (
    BundleGroups,
    Starts,
    bundle_groups_of,
    pays_of,
    shares_nest,
    starts_of,
)
from placeopt.formulations.fillings.master import CHARGES, RELAXES, SCALE, CarriedPrices, Master, Prices
from placeopt.formulations.fillings.mixing import MixPricing
from placeopt.formulations.fillings.parts import Nodes, Parts, parts_of
from placeopt.formulations.fillings.pool import Column, Filling, Pool, columns_of, requests_of
from placeopt.formulations.fillings.pricing import NodePricing, Priced, Pricing
from placeopt.formulations.fillings.spreads import Spread, Spreading
from placeopt.formulations.fillings.units import Units, merged, units_of

__all__ = [
    "CHARGES",
    "COST_RELAXES",
    "COUNTED",
    "RELAXES",
    "SCALE",
    "BundleGroups",
    "CarriedPrices",
    "Column",
    "CostMix",
    "Disturbance",
    "Filling",
    "GridBound",
    "Master",
    "MixPricing",
    "NodePricing",
    "Nodes",
    "Parts",
    "Pool",
    "Priced",
    "Prices",
    "Pricing",
    "Spread",
    "Spreading",
    "Starts",
    "Units",
    "bundle_groups_of",
    "columns_of",
    "disturbance_of",
    "gang_paths",
    "merged",
    "parts_of",
    "pays_of",
    "plan_of",
    "requests_of",
    "shares_nest",
    "starts_of",
    "units_of",
]
