"""An engine that follows a host system: each reading becomes differences, where it can, or a load."""

from __future__ import annotations

import threading
from hashlib import sha256

from placeopt.errors import BadInput, Unsupported
from placeopt.live_cluster.changes import changes_between, keep_prices
from placeopt.live_cluster.cluster_record import without_groups
from placeopt.live_cluster.engine import Engine
from placeopt.model import Instance, Plan
from placeopt.solving.bounds import relative_gap
from placeopt.solving.held_room import hold_room

HOLD_AFTER_S = 3600.0
"""Waiting time after which both drivers hold room for the job that has waited longest, unless told otherwise."""


class LiveEngine:
    """
    Readings of one cluster, and rounds over the last one.

    Nothing that a plan decided is committed: what the host system shows is what happened. ``engine``: Its caller closes
    it. ``hold_after_s``: Waiting time after which room is held for the job that has waited longest; None: never.
    """

    def __init__(self, engine: Engine, hold_after_s: float | None = None) -> None:
        self._engine, self._hold_after_s = engine, hold_after_s
        self.before: Instance | None = None
        """The last reading."""
        self._whole: Instance | None = None
        """The last reading, where jobs of groups wait: what the engine keeps between rounds has none."""
        self.loads = 0
        """How often the cluster was compiled as a whole."""

    @property
    def snapshot(self) -> Instance:
        """The cluster of which rounds are; raises `BadInput` before the first reading."""
        return self._whole or self._engine.snapshot

    def follow(self, now: Instance) -> None:
        """Take a reading: the engine gets the differences, but for jobs of groups, of which what runs stays."""
        self.before = now
        if self._hold_after_s is not None:
            now = hold_room(now, after_ms=round(1000 * self._hold_after_s))
        flat, waiting = without_groups(now)
        self._whole, now = (now, flat) if waiting else (None, flat)
        if self.loads == 0 or not self._changed(now):
            self._engine.load(keep_prices(self._engine.snapshot, now) if self.loads else now)
            self.loads += 1

    def _changed(self, now: Instance) -> bool:
        """Apply the differences; return False where the engine has to load the reading as a whole."""
        changes = changes_between(self._engine.snapshot, now, flags=True)
        if changes.reload:
            return False
        try:
            self._engine.apply(changes)
        except (BadInput, Unsupported):  # readings of different moments may contradict each other on the way
            return False
        return True

    def decide(
        self, time_limit_s: float, cancel: threading.Event, *, waiting_only: bool = False, deterministic: bool = False
    ) -> Plan:
        """
        Return the plan of a round within a time limit.

        ``waiting_only``: What runs is a load on the nodes, unless some of it may be changed or a rule of the policy
        looks at each running job; such a plan states no costs. A round in which jobs of groups wait is compiled anew.
        """
        if self._whole is not None:
            return self._engine.solve(
                self._whole, time_limit_s=time_limit_s, cancel=cancel, deterministic=deterministic
            )
        flags = (held.movable or held.shrinkable or held.preemptible for held in self.snapshot.running)
        if waiting_only and not any(flags):
            try:
                return self._engine.place(
                    time_limit_s=time_limit_s, waiting_only=True, cancel=cancel, deterministic=deterministic
                )
            except Unsupported:
                pass
        return self._engine.place(time_limit_s=time_limit_s, cancel=cancel, deterministic=deterministic)


def plan_digest(plan: Plan) -> str:
    """Return 16 hexadecimal digits of SHA-256 over what a plan places."""
    text = "\n".join(placement.model_dump_json() for placement in plan.placements)
    return sha256(text.encode()).hexdigest()[:16]


def value_gap(plan: Plan) -> float | None:
    """Return by what share of the proven bound a plan's value may be below the best one; None without a bound."""
    return relative_gap(plan.levels[0].objective, plan.levels[0].bound)
