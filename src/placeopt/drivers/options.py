"""How a driver runs, on every host."""

from __future__ import annotations

from dataclasses import dataclass, field

from placeopt.importers.priority_rule import DEFAULT_RULE, PriorityRule
from placeopt.scheduling import Scheduling, Telemetry, named_policy


@dataclass(frozen=True, kw_only=True)
class DriverOptions:
    """
    How to drive a cluster.

    ``every_s``: Seconds from the beginning of one round to that of the next. ``max_actions``: Most changes of a round.
    ``dry_run``: Decide, and change nothing. ``policy``: Who runs where; what it leaves out is as the reader says.
    ``telemetry``: Where the use of GPUs is measured. ``rule``: What priorities and classes are worth, and which may be
    preempted. ``deterministic``: Rounds stop on work, not on time.
    """

    every_s: float = 15.0
    max_actions: int = 100
    dry_run: bool = False
    policy: Scheduling = field(default_factory=lambda: named_policy("rounds"))
    telemetry: Telemetry | None = None
    rule: PriorityRule = DEFAULT_RULE
    deterministic: bool = False
