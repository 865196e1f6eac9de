"""``arrangements``: what rooms of nodes hold, one column each; exact at the cost level, where a round decomposes."""

from placeopt.formulations.branch_and_price.bundle_groups import make_kinds
from placeopt.formulations.branch_and_price.cross_group_jobs import make_patterns
from placeopt.formulations.branch_and_price.gpu_groups import make_rooms
from placeopt.formulations.branch_and_price.master import Layout, Limits, Master
from placeopt.formulations.branch_and_price.pricing import Column, Priced, Pricing
from placeopt.formulations.branch_and_price.realise import columns_of, realise

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
