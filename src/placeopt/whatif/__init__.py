"""
Questions about capacity, each answered on a copy of an instance, with a proof wherever there is one.

`placeopt.edits` makes scenarios, `after_plan` the cluster after a plan is carried out, `running_as_plan` the running
jobs as a plan. `fit` and `slots` count what still fits, `fail` returns the effect of lost nodes or racks, `add` the
cheapest nodes that are missing. `compare` solves a round beside named variants of steps. `review` compares a given
placement with the best one, `defrag` empties nodes by moving running jobs. Answers are records, each with a ``view()``.
"""

from placeopt.whatif.cheapest_nodes import Added, NodesOfType, add
from placeopt.whatif.comparison import Compared, Comparison, RoundOutcome, compare
from placeopt.whatif.defragmentation import Defrag, EmptiedDomains, defrag
from placeopt.whatif.failure import Failure
from placeopt.whatif.failures import Failures, fail
from placeopt.whatif.fit_copies import Binding, Fit, LargestGang, fit
from placeopt.whatif.gpu_slots import SlotCount, Slots, slots
from placeopt.whatif.job_spec import parse_job
from placeopt.whatif.node_rounds import NodeTrial
from placeopt.whatif.placements import Placements, after_plan, plan_of, running_as_plan
from placeopt.whatif.plan_review import CostComparison, Review, review
from placeopt.whatif.round_solving import Limits
from placeopt.whatif.variants import Variant, Variants, parse_variants

__all__ = [
    "Added",
    "Binding",
    "Compared",
    "Comparison",
    "CostComparison",
    "Defrag",
    "EmptiedDomains",
    "Failure",
    "Failures",
    "Fit",
    "LargestGang",
    "Limits",
    "NodeTrial",
    "NodesOfType",
    "Placements",
    "Review",
    "RoundOutcome",
    "SlotCount",
    "Slots",
    "Variant",
    "Variants",
    "add",
    "after_plan",
    "compare",
    "defrag",
    "fail",
    "fit",
    "parse_job",
    "parse_variants",
    "plan_of",
    "review",
    "running_as_plan",
    "slots",
]
