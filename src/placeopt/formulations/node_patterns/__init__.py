"""
``patterns``: how many nodes in a state get which filling; rounds far too large for exact forms.

A *kind* is what one bundle of a job asks of a node. A *state* is what nodes have free, as far as kinds can tell. A
*filling* says how many bundles of each kind a node gets. Fillings are found by pricing: at a price per kind, the most
valuable filling of every state, by dynamic programming over GPU shares and the two node resources that bind most. The
prices themselves prove a bound, and fillings that an LP mixes become a plan.
"""

from placeopt.formulations.node_patterns.bundle_groups import Kinds, kinds_of, shares_nest
from placeopt.formulations.node_patterns.job_groups import Crowds, crowds_of
from placeopt.formulations.node_patterns.layout import Wish, fillings_of, wishes
from placeopt.formulations.node_patterns.master import Master
from placeopt.formulations.node_patterns.node_states import States, states_of
from placeopt.formulations.node_patterns.pricing import Filling, Pricing
from placeopt.formulations.node_patterns.proof import RELAXES, proven_bound

__all__ = [
    "RELAXES",
    "Crowds",
    "Filling",
    "Kinds",
    "Master",
    "Pricing",
    "States",
    "Wish",
    "crowds_of",
    "fillings_of",
    "kinds_of",
    "proven_bound",
    "shares_nest",
    "states_of",
    "wishes",
]
