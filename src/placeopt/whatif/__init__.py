"""
What if? Questions about capacity, each answered on a copy of an instance, with a proof wherever there is one.

`apply_patch` makes scenarios, `after_plan` the cluster once a plan is carried out. `fit` and `slots` say what is left,
`fail` what the loss of nodes or racks does, `add` how many nodes are missing. `sweep` and `swap` compare whole rounds,
`price` says what one more node, rack or GPU of quota is worth. `review` judges a placement that somebody else made,
`defrag` empties nodes by moving what runs.
"""

from placeopt.aliases import former_submodules
from placeopt.whatif.add_nodes import add
from placeopt.whatif.applied_plan import after_plan
from placeopt.whatif.cheapest_nodes import cheapest
from placeopt.whatif.defragmentation import defrag
from placeopt.whatif.failures import fail
from placeopt.whatif.fit_copies import fit
from placeopt.whatif.free_slots import slots
from placeopt.whatif.instance_edit import Patched
from placeopt.whatif.job_spec import parse_job
from placeopt.whatif.marginal_prices import price
from placeopt.whatif.node_swap import swap
from placeopt.whatif.patch import apply_patch
from placeopt.whatif.plan_review import Placements, plan_of, review
from placeopt.whatif.round_solving import Limits
from placeopt.whatif.round_sweep import parse_variation, sweep
from placeopt.whatif.steps import Patch

__all__ = [
    "Limits",
    "Patch",
    "Patched",
    "Placements",
    "add",
    "after_plan",
    "apply_patch",
    "cheapest",
    "defrag",
    "fail",
    "fit",
    "parse_job",
    "parse_variation",
    "plan_of",
    "price",
    "review",
    "slots",
    "swap",
    "sweep",
]

former_submodules(__name__)
