"""Heuristics: an allocation in milliseconds, with nothing proven."""

from placeopt.heuristics.greedy import SCORES, GreedyResult, greedy

__all__ = ["SCORES", "GreedyResult", "greedy"]
