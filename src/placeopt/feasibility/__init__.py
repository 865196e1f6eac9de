"""
One job while all else stays as it is: whether it fits, how, and with how many workers. Exact, without a solver.

``requirement`` divides the job's record into options, and groups of constraints that can be dropped from them;
``free_capacity`` is what a state leaves free to it; ``fit`` decides, by counting the ways to lie over nodes and domains
(`placeopt.problem.worker_distribution`).
"""

from placeopt.feasibility.fit import Fit, best_fit, fit, largest
from placeopt.feasibility.free_capacity import FreeCapacity, free_capacity_of
from placeopt.feasibility.requirement import Requirement, requirements_of

__all__ = [
    "Fit",
    "FreeCapacity",
    "Requirement",
    "best_fit",
    "fit",
    "free_capacity_of",
    "largest",
    "requirements_of",
]
