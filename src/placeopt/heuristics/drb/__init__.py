"""Dual recursive bi-partitioning (SC'17 algorithms 1 to 3). ``CHOOSERS`` place a job by no score of nodes, by name."""

from collections.abc import Callable
from functools import partial

from placeopt.heuristics.drb.again import place_again
from placeopt.heuristics.drb.artifact import ArtifactUtility
from placeopt.heuristics.drb.place import Bipartition, BipartitionOfCommunicating, communicating_jobs
from placeopt.heuristics.greedy_pass import Chooser
from placeopt.problem import State

__all__ = ["CHOOSERS", "BipartitionOfCommunicating", "communicating_jobs", "place_again"]

CHOOSERS: dict[str, Callable[[State], Chooser]] = {
    "drb": Bipartition,
    "drb-sc17": partial(Bipartition, utility=ArtifactUtility),
}
