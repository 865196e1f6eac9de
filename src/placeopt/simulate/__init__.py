"""Simulation: a scenario played under a scheduling policy, event by event."""

from placeopt.simulate.catalogue import named_policy, policy_names
from placeopt.simulate.history import History, JobHistory, Rounds
from placeopt.simulate.play import Tick, simulate
from placeopt.simulate.summary import Summary, summarise

__all__ = [
    "History",
    "JobHistory",
    "Rounds",
    "Summary",
    "Tick",
    "named_policy",
    "policy_names",
    "simulate",
    "summarise",
]
