"""Simulation: a scenario played under a scheduling policy, event by event."""

from placeopt.simulation.estimates import MissingEstimates, missing_estimates, with_actual_estimates
from placeopt.simulation.history import History, JobHistory, Rounds
from placeopt.simulation.play import Tick, simulate
from placeopt.simulation.scheduling.named_policies import named_policy, policy_names
from placeopt.simulation.snapshot import longest_queue_ms, round_at
from placeopt.simulation.stranded_jobs import NeverEnds, never_ending
from placeopt.simulation.summary import Summary, UserFigures, occupancy_between, summarise

__all__ = [
    "History",
    "JobHistory",
    "MissingEstimates",
    "NeverEnds",
    "Rounds",
    "Summary",
    "Tick",
    "UserFigures",
    "longest_queue_ms",
    "missing_estimates",
    "named_policy",
    "never_ending",
    "occupancy_between",
    "policy_names",
    "round_at",
    "simulate",
    "summarise",
    "with_actual_estimates",
]
