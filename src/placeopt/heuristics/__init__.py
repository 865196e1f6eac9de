"""Heuristics: an allocation in milliseconds, with nothing proven."""

from placeopt.heuristics.candidates import Candidates
from placeopt.heuristics.greedy import SCORES, GreedyResult, greedy, place, places
from placeopt.heuristics.preempt import make_room
from placeopt.heuristics.scores import Stranding

__all__ = ["SCORES", "Candidates", "GreedyResult", "Stranding", "greedy", "make_room", "place", "places"]
