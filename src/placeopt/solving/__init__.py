"""
One round from arguments to checked plan: context, stages in a pipeline, and the plan at the end.

``solve`` stands in `placeopt` too; ``METHODS`` are the methods that ``solve`` offers, ``SolveParams`` its
options, each stated once.
"""

from typing import TYPE_CHECKING

from placeopt.lazy import lazy_names

if TYPE_CHECKING:
    from placeopt.solving.api import Interrupted, Solver, solve
    from placeopt.solving.audit import allocation_of
    from placeopt.solving.bounds import Progress
    from placeopt.solving.methods import METHODS, Method
    from placeopt.solving.params import SolveOptions, SolveParams

__all__ = [
    "METHODS",
    "Interrupted",
    "Method",
    "Progress",
    "SolveOptions",
    "SolveParams",
    "Solver",
    "allocation_of",
    "solve",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "api": ("Interrupted", "Solver", "solve"),
        "audit": ("allocation_of",),
        "bounds": ("Progress",),
        "methods": ("METHODS", "Method"),
        "params": ("SolveOptions", "SolveParams"),
    },
)
