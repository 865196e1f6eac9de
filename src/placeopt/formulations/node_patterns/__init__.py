"""
``node-patterns``: how many nodes in a state get which pattern; rounds far too large for exact forms.

A *bundle group* is what one bundle of a job asks of a node. A *state* is what nodes have free, as far as bundle groups
can tell. A *pattern* says how many bundles of each bundle group a node gets. Fillings are found by pricing: at a price
per bundle group, the most valuable pattern of every state, by dynamic programming over GPU shares and the two node
resources that bind most. The prices themselves prove a bound, and patterns that an LP mixes become a plan. Where states
are many, the LP mixes what the nodes of a group of states hold together.
"""

from placeopt.formulations.node_patterns.groups import (
    NOTHING_MERGED,
    BundleGroups,
    JobGroups,
    MergedBundles,
    NodeStates,
    bundle_groups_of,
    job_groups_of,
    node_states_of,
    shares_nest,
    state_groups_of,
)
from placeopt.formulations.node_patterns.master import RELAXES, PatternMaster, proven_bound
from placeopt.formulations.node_patterns.merged import merged_bundles_of
from placeopt.formulations.node_patterns.pricing import BestPatterns, NodePattern, PatternPricing
from placeopt.formulations.node_patterns.realise import PlacementRequest, patterns_of_plan, placement_requests
from placeopt.formulations.node_patterns.start_prices import CarriedPrices, capacity_model, capacity_prices
from placeopt.formulations.node_patterns.tiers import TieredPricing, most_busy

__all__ = [
    "NOTHING_MERGED",
    "RELAXES",
    "BestPatterns",
    "BundleGroups",
    "CarriedPrices",
    "JobGroups",
    "MergedBundles",
    "NodePattern",
    "NodeStates",
    "PatternMaster",
    "PatternPricing",
    "PlacementRequest",
    "TieredPricing",
    "bundle_groups_of",
    "capacity_model",
    "capacity_prices",
    "job_groups_of",
    "merged_bundles_of",
    "most_busy",
    "node_states_of",
    "patterns_of_plan",
    "placement_requests",
    "proven_bound",
    "shares_nest",
    "state_groups_of",
]
