"""The compiled problem, placements in indices, and the state of a round under construction."""

from placeopt.problem.arrays import RESOURCES, UNLIMITED, BoolArray, IntArray
from placeopt.problem.changes import change_of, open_state
from placeopt.problem.compile import compile_problem
from placeopt.problem.options import Options
from placeopt.problem.placement import Allocation, Placement
from placeopt.problem.problem import Level, Problem
from placeopt.problem.state import Move, State, hose_loads

__all__ = [
    "RESOURCES",
    "UNLIMITED",
    "Allocation",
    "BoolArray",
    "IntArray",
    "Level",
    "Move",
    "Options",
    "Placement",
    "Problem",
    "State",
    "change_of",
    "compile_problem",
    "hose_loads",
    "open_state",
]
