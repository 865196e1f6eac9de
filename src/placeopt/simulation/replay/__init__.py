"""
Capacity questions about traces: a scenario is simulated repeatedly, with more nodes, other arrivals or policies.

`add` finds the fewest nodes with which a goal such as ``p95_wait<=30m`` is met, `compare` simulates several settings,
`clear` plays a round until its queue is clear. Results are measured, not proven.
"""

from placeopt.simulation.replay.goals import Goal, measures_of, parse_goal
from placeopt.simulation.replay.questions import add, compare
from placeopt.simulation.replay.queue_clearing import Clear, QueuedJob, clear
from placeopt.simulation.replay.series import MeasuredRun, ReplayPoint, ReplaySeries
from placeopt.simulation.replay.variations import parse_settings, patch_scenario, with_drawn_arrivals

__all__ = [
    "Clear",
    "Goal",
    "MeasuredRun",
    "QueuedJob",
    "ReplayPoint",
    "ReplaySeries",
    "add",
    "clear",
    "compare",
    "measures_of",
    "parse_goal",
    "parse_settings",
    "patch_scenario",
    "with_drawn_arrivals",
]
