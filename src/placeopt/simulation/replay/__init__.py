"""
Capacity questions about traces: a scenario is played again and again, with more nodes, other arrivals, other policies.

`add` looks for the fewest nodes with which a goal such as ``p95_wait<=30m`` is met, `sweep` plays one setting after the
other. What a simulation says is measured, not proven.
"""

from placeopt.aliases import former_submodules
from placeopt.simulation.replay.add_nodes import add
from placeopt.simulation.replay.goals import Goal, parse_goal
from placeopt.simulation.replay.scenario_sweep import parse_settings, sweep
from placeopt.simulation.replay.series import MeasuredRun, ReplayPoint, ReplaySeries

__all__ = ["Goal", "MeasuredRun", "ReplayPoint", "ReplaySeries", "add", "parse_goal", "parse_settings", "sweep"]

former_submodules(__name__)
