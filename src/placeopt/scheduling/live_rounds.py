"""Whole rounds over readings: each reading becomes differences of what the engine has, where it can, or a load."""

from __future__ import annotations

import threading
from typing import Any

from placeopt.edits import apply
from placeopt.errors import BadInput, Unsupported
from placeopt.live_cluster.changes import changes_between, keep_prices
from placeopt.live_cluster.cluster_record import without_groups
from placeopt.live_cluster.engine import Engine
from placeopt.model import Instance, Plan
from placeopt.scheduling.long_waits import LongWaits
from placeopt.scheduling.policy import Scheduling
from placeopt.scheduling.queue_usage import QueueUsage
from placeopt.scheduling.request import as_requested


def round_under(scheduling: Scheduling, now: Instance, usage: QueueUsage | None = None) -> Instance:
    """Return the round that a policy of whole rounds, as it is in this cluster, makes of a reading."""
    jobs = as_requested(now.jobs, scheduling, now.cluster)
    now = now.model_copy(update={"policy": scheduling.policy, "jobs": jobs})
    if usage is not None:
        now = apply(now, (usage.step_at(now),))
    waits = LongWaits(scheduling)
    for job in jobs:
        waits.note(job)
    return waits.with_room(now, deterministic=False)


class LiveRounds:
    """
    A policy of whole rounds on readings of one cluster.

    Nothing that a plan decided is committed. ``scheduling``: The policy as it is in this cluster.
    """

    def __init__(self, engine: Engine, scheduling: Scheduling) -> None:
        self._engine, self._scheduling = engine, scheduling
        half_life_ms = scheduling.usage_half_life_ms
        self._usage = None if half_life_ms is None else QueueUsage(scheduling.policy, half_life_ms)
        self._whole: Instance | None = None
        """The last reading, where jobs of groups wait: what the engine keeps between rounds has none."""
        self.loads = 0
        """How often the cluster was compiled as a whole."""

    @property
    def snapshot(self) -> Instance:
        """The cluster of which rounds are; raises `BadInput` before the first reading."""
        return self._whole or self._engine.snapshot

    @property
    def wants_round(self) -> bool:
        """Whether a round could change anything: jobs wait, or running ones may be moved to more workers."""
        now = self.snapshot
        waits = len(now.jobs) > len(now.running)
        return waits or (now.policy.changes.moves_max > 0 and any(held.shrinkable for held in now.running))

    def follow(self, now: Instance) -> None:
        """Take a reading: the engine gets the differences, but for jobs of groups, of which what runs stays."""
        now = round_under(self._scheduling, now, self._usage)
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
        options: dict[str, Any] = {
            "method": self._scheduling.method,
            "time_limit_s": time_limit_s,
            "cancel": cancel,
            "deterministic": deterministic,
        }
        if self._whole is not None:
            return self._engine.solve(self._whole, **options)
        flags = (held.movable or held.shrinkable or held.preemptible for held in self.snapshot.running)
        if waiting_only and not any(flags):
            try:
                return self._engine.place(waiting_only=True, **options)
            except Unsupported:
                pass
        return self._engine.place(**options)
