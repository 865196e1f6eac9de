"""
Capacity questions about traces: a scenario is simulated repeatedly, with more nodes, other arrivals or policies.

`add` finds the fewest nodes with which a goal such as ``p95_wait<=30m`` is met, `sweep` simulates several settings.
Results are measured, not proven.
"""

from placeopt.simulation.replay.goals import Goal, measures_of, parse_goal
from placeopt.simulation.replay.questions import add, sweep
from placeopt.simulation.replay.series import MeasuredRun, ReplayPoint, ReplaySeries
from placeopt.simulation.replay.variations import parse_settings, patch_scenario, with_drawn_arrivals

__all__ = [
    "Goal",
    "MeasuredRun",
    "ReplayPoint",
    "ReplaySeries",
    "add",
    "measures_of",
    "parse_goal",
    "parse_settings",
    "patch_scenario",
    "sweep",
    "with_drawn_arrivals",
]
