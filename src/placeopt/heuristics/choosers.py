"""Choosers by name: ways to place a job that are no score of nodes."""

from __future__ import annotations

from collections.abc import Callable

from placeopt.heuristics.drb.exhaustive import Exhaustive
from placeopt.heuristics.drb.place import Bipartition
from placeopt.heuristics.greedy import Chooser
from placeopt.problem import State

CHOOSERS: dict[str, Callable[[State], Chooser]] = {"drb": Bipartition, "drb-sc17": Exhaustive}
