"""``arrangements``: what rooms of nodes hold, one column each; exact at the cost level, where a round decomposes."""

from placeopt.formulations.arrangements.kinds import make_kinds
from placeopt.formulations.arrangements.master import Layout, Limits, Master
from placeopt.formulations.arrangements.pricing import Column, Priced, Pricing
from placeopt.formulations.arrangements.realise import columns_of, realise
from placeopt.formulations.arrangements.rooms import make_rooms
from placeopt.formulations.arrangements.spans import make_patterns

__all__ = [
    "Column",
    "Layout",
    "Limits",
    "Master",
    "Priced",
    "Pricing",
    "columns_of",
    "make_kinds",
    "make_patterns",
    "make_rooms",
    "realise",
]
