"""Heuristics: an allocation in milliseconds, with nothing proven."""

from placeopt.heuristics.answered import Answered, Refused, Requests
from placeopt.heuristics.bundles import assign_gpus
from placeopt.heuristics.candidates import Candidates
from placeopt.heuristics.drb import CHOOSERS, BipartitionOfCommunicating, communicating_jobs, place_again
from placeopt.heuristics.greedy_pass import Chooser, GreedyResult, greedy, place, places
from placeopt.heuristics.job_orders import order_jobs, waiting_allowances
from placeopt.heuristics.preemption import make_room
from placeopt.heuristics.scores.fit import Stranding
from placeopt.heuristics.scores.registry import SCORES, score_named
from placeopt.heuristics.scores.score import Score

__all__ = [
    "CHOOSERS",
    "SCORES",
    "Answered",
    "BipartitionOfCommunicating",
    "Candidates",
    "Chooser",
    "GreedyResult",
    "Refused",
    "Requests",
    "Score",
    "Stranding",
    "assign_gpus",
    "communicating_jobs",
    "greedy",
    "make_room",
    "order_jobs",
    "place",
    "place_again",
    "places",
    "score_named",
    "waiting_allowances",
]
