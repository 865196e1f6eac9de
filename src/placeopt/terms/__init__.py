"""
What is good (costs) and what is allowed (rules): one file each, stated once, used by every way to work.

Here are the two levels of the objective and what costs and rules have in common; `placeopt.terms.costs` and
`placeopt.terms.rules` have them by name.
"""

from placeopt.terms.objective import (
    MAX_COST,
    Weighted,
    cost,
    cost_delta,
    cost_expression,
    trivial_gpu_milli_bound,
    trivial_value_bound,
    value,
    value_expression,
    weighted_costs,
)
from placeopt.terms.protocols import Cost
from placeopt.terms.standing import relaxed_state
from placeopt.terms.variables import Variables

__all__ = [
    "MAX_COST",
    "Cost",
    "Variables",
    "Weighted",
    "cost",
    "cost_delta",
    "cost_expression",
    "relaxed_state",
    "trivial_gpu_milli_bound",
    "trivial_value_bound",
    "value",
    "value_expression",
    "weighted_costs",
]
