"""Heuristics: an allocation in milliseconds, with nothing proven."""

from placeopt.heuristics.candidates import Candidates
from placeopt.heuristics.choosers import CHOOSERS
from placeopt.heuristics.family import SCORES, score_named
from placeopt.heuristics.greedy import Chooser, GreedyResult, greedy, place, places, table_for
from placeopt.heuristics.one_by_one import Moves, OneByOne, Quota
from placeopt.heuristics.preempt import make_room
from placeopt.heuristics.scores import Stranding
from placeopt.heuristics.settle import settle
from placeopt.heuristics.swaf import swaf
from placeopt.heuristics.table import Table
from placeopt.heuristics.window import window

__all__ = [
    "CHOOSERS",
    "SCORES",
    "Candidates",
    "Chooser",
    "GreedyResult",
    "Moves",
    "OneByOne",
    "Quota",
    "Stranding",
    "Table",
    "greedy",
    "make_room",
    "place",
    "places",
    "score_named",
    "settle",
    "swaf",
    "table_for",
    "window",
]
