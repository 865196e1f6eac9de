"""
What if? Questions about capacity, each answered on a copy of an instance, with a proof wherever there is one.

`apply_patch` makes scenarios, `after_plan` the cluster once a plan is carried out. `fit` and `slots` say what is left,
`fail` what the loss of nodes or racks does, `add` how many nodes are missing. `sweep` and `swap` compare whole rounds,
`price` says what one more node, rack or GPU of quota is worth. `review` judges a placement that somebody else made,
`defrag` empties nodes by moving what runs.
"""

from placeopt.whatif.add import add
from placeopt.whatif.after_plan import after_plan
from placeopt.whatif.capacity import Limits
from placeopt.whatif.cheapest import cheapest
from placeopt.whatif.defrag import defrag
from placeopt.whatif.fail import fail
from placeopt.whatif.fit import fit
from placeopt.whatif.instance_edit import Patched
from placeopt.whatif.job_spec import parse_job
from placeopt.whatif.patch import apply_patch
from placeopt.whatif.price import price
from placeopt.whatif.review import Placements, plan_of, review
from placeopt.whatif.slots import slots
from placeopt.whatif.steps import Patch
from placeopt.whatif.swap import swap
from placeopt.whatif.sweep import parse_variation, sweep

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
