"""
Questions about capacity, each answered on a copy of an instance, with a proof wherever there is one.

`placeopt.edits` makes scenarios, `after_plan` the cluster after a plan is carried out, `running_as_plan` the running
jobs as a plan. `fit` and `slots` count what still fits, `fail` returns the effect of lost nodes or racks, `add` the
number of missing nodes. `sweep` and `swap` compare whole rounds, `price` returns the value of one more node, rack or
GPU of quota. `review` compares a given placement with the best one, `defrag` empties nodes by moving running jobs.
Answers are records.
"""

from placeopt.whatif.add_nodes import add
from placeopt.whatif.answers import (
    Binding,
    Cheapest,
    CostComparison,
    Defrag,
    EmptiedDomains,
    Failure,
    Failures,
    Fit,
    LargestGang,
    MixtureTrial,
    NodesNeeded,
    NodeTrial,
    Price,
    Prices,
    Review,
    RoundOutcome,
    SlotCount,
    Slots,
    Swap,
    Sweep,
    SweepPoint,
)
from placeopt.whatif.cheapest_nodes import cheapest
from placeopt.whatif.defragmentation import defrag
from placeopt.whatif.failures import fail
from placeopt.whatif.fit_copies import fit, slots
from placeopt.whatif.from_running import after_plan, running_as_plan
from placeopt.whatif.job_spec import parse_job
from placeopt.whatif.marginal_prices import price
from placeopt.whatif.plan_review import Placements, plan_of, review
from placeopt.whatif.round_solving import Limits
from placeopt.whatif.round_sweep import parse_variation, swap, sweep

__all__ = [
    "Binding",
    "Cheapest",
    "CostComparison",
    "Defrag",
    "EmptiedDomains",
    "Failure",
    "Failures",
    "Fit",
    "LargestGang",
    "Limits",
    "MixtureTrial",
    "NodeTrial",
    "NodesNeeded",
    "Placements",
    "Price",
    "Prices",
    "Review",
    "RoundOutcome",
    "SlotCount",
    "Slots",
    "Swap",
    "Sweep",
    "SweepPoint",
    "add",
    "after_plan",
    "cheapest",
    "defrag",
    "fail",
    "fit",
    "parse_job",
    "parse_variation",
    "plan_of",
    "price",
    "review",
    "running_as_plan",
    "slots",
    "swap",
    "sweep",
]
