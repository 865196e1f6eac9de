"""The compiled problem, placements in indices, and the state of a round under construction."""

from placeopt.problem.arrays import (
    CPU,
    GPU_MILLI,
    MEMORY,
    RESOURCES,
    UNLIMITED,
    Allocation,
    BoolArray,
    IntArray,
    Options,
    Placement,
)
from placeopt.problem.bundle_rooms import BundleRooms, ClassRooms
from placeopt.problem.changes import change_of, keeps_limits, open_state
from placeopt.problem.compile import compile_problem
from placeopt.problem.hardware import FragmentationLevel
from placeopt.problem.problem import Problem
from placeopt.problem.queues import in_amounts
from placeopt.problem.state import Move, State, hose_loads

__all__ = [
    "CPU",
    "GPU_MILLI",
    "MEMORY",
    "RESOURCES",
    "UNLIMITED",
    "Allocation",
    "BoolArray",
    "BundleRooms",
    "ClassRooms",
    "FragmentationLevel",
    "IntArray",
    "Move",
    "Options",
    "Placement",
    "Problem",
    "State",
    "change_of",
    "compile_problem",
    "hose_loads",
    "in_amounts",
    "keeps_limits",
    "open_state",
]
