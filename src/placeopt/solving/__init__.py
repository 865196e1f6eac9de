"""
One round from arguments to checked plan: context, stages in a pipeline, and the plan at the end.

``solve`` stands in `placeopt` too; ``METHODS`` are the methods that ``solve`` offers, ``SolveParams`` its
options, each stated once.
"""

from typing import TYPE_CHECKING

from placeopt.lazy import lazy_names

if TYPE_CHECKING:
    from placeopt.solving.api import Interrupted as Interrupted
    from placeopt.solving.api import Solver as Solver
    from placeopt.solving.api import solve as solve
    from placeopt.solving.audit import allocation_of as allocation_of
    from placeopt.solving.bounds import Progress as Progress
    from placeopt.solving.held_room import hold_room as hold_room
    from placeopt.solving.methods import METHODS as METHODS
    from placeopt.solving.methods import Method as Method
    from placeopt.solving.params import SolveOptions as SolveOptions
    from placeopt.solving.params import SolveParams as SolveParams

__getattr__, __dir__ = lazy_names(__name__)
