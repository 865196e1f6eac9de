"""
``patterns``: how many nodes in a state get which filling; rounds far too large for exact forms.

A *kind* is what one bundle of a job asks of a node. A *state* is what nodes have free, as far as kinds can tell. A
*filling* says how many bundles of each kind a node gets. Fillings are found by pricing: at a price per kind, the most
valuable filling of every state, by dynamic programming over GPU shares and the two node resources that bind most. The
prices themselves prove a bound, and fillings that an LP mixes become a plan.
"""

from placeopt.formulations.node_patterns.bundle_groups import BundleGroups, bundle_groups_of, shares_nest
from placeopt.formulations.node_patterns.job_groups import JobGroups, job_groups_of
from placeopt.formulations.node_patterns.layout import Wish, patterns_of_plan, wishes
from placeopt.formulations.node_patterns.master import Master
from placeopt.formulations.node_patterns.node_states import NodeStates, node_states_of
from placeopt.formulations.node_patterns.pricing import NodePattern, Pricing
from placeopt.formulations.node_patterns.proof import RELAXES, proven_bound

__all__ = [
    "RELAXES",
    "BundleGroups",
    "JobGroups",
    "Master",
    "NodePattern",
    "NodeStates",
    "Pricing",
    "Wish",
    "bundle_groups_of",
    "job_groups_of",
    "node_states_of",
    "patterns_of_plan",
    "proven_bound",
    "shares_nest",
    "wishes",
]
