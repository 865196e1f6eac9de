"""Heuristics: an allocation in milliseconds, with nothing proven."""

from placeopt.heuristics.candidates import Candidates
from placeopt.heuristics.greedy import SCORES, GreedyResult, greedy, place

__all__ = ["SCORES", "Candidates", "GreedyResult", "greedy", "place"]
