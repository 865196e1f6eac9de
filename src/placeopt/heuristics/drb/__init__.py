"""Dual recursive bi-partitioning (SC'17 algorithms 1 to 3). ``CHOOSERS`` place a job by no score of nodes, by name."""

from collections.abc import Callable

from placeopt.heuristics.drb.communicating import BipartitionOfCommunicating, communicating_jobs
from placeopt.heuristics.drb.exhaustive import Exhaustive
from placeopt.heuristics.drb.place import Bipartition
from placeopt.heuristics.greedy_pass import Chooser
from placeopt.problem import State

__all__ = ["CHOOSERS", "BipartitionOfCommunicating", "communicating_jobs"]

CHOOSERS: dict[str, Callable[[State], Chooser]] = {"drb": Bipartition, "drb-sc17": Exhaustive}
