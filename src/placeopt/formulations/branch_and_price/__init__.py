"""
``branch-and-price``: what GPU groups of nodes hold, one column each; exact at the cost level, where a round decomposes.
"""

from placeopt.formulations.branch_and_price.bundle_groups import make_bundle_groups
from placeopt.formulations.branch_and_price.cross_group_jobs import make_cross_group_patterns
from placeopt.formulations.branch_and_price.gpu_groups import make_gpu_groups
from placeopt.formulations.branch_and_price.master import BranchLimits, ColumnMaster, MasterModel
from placeopt.formulations.branch_and_price.pricing import Column, ColumnPricing, DualPrices, Priced
from placeopt.formulations.branch_and_price.realise import columns_of, realise
from placeopt.formulations.branch_and_price.twin_groups import fold_twins

__all__ = [
    "BranchLimits",
    "Column",
    "ColumnMaster",
    "ColumnPricing",
    "DualPrices",
    "MasterModel",
    "Priced",
    "columns_of",
    "fold_twins",
    "make_bundle_groups",
    "make_cross_group_patterns",
    "make_gpu_groups",
    "realise",
]
