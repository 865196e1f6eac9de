"""An engine that keeps the cluster between readings: differences of two readings, and a round over what waits."""

from __future__ import annotations

import threading

from placeopt.errors import BadInput
from placeopt.live_cluster.changes import ClusterChanges, changes_between
from placeopt.live_cluster.engine import Engine
from placeopt.model import Instance, Plan, Policy


class LiveRounds:
    """Rounds of one cluster; ``policy`` None: that of the readings."""

    def __init__(self, policy: Policy | None) -> None:
        self._engine = Engine(policy)
        self.before: Instance | None = None
        """The last reading."""
        self.loads = 0
        """How often the cluster was compiled as a whole."""

    @property
    def loaded(self) -> Instance:
        """The cluster as the engine has it."""
        return self._engine.snapshot

    def close(self) -> None:
        """End the solver processes."""
        self._engine.close()

    def solve(
        self, now: Instance, limit_s: float, cancel: threading.Event, *, deterministic: bool = False
    ) -> Plan | None:
        """Bring the engine to a reading, and return the plan of a round; None if nothing waits."""
        self._take(now)
        self.before = now
        if len(now.jobs) == len(now.running):
            return None
        return self._engine.place(time_limit_s=limit_s, cancel=cancel, deterministic=deterministic)

    def _take(self, now: Instance) -> None:
        if self.before is not None:
            changes = changes_between(self._engine.snapshot, now)
            if not changes.reload:
                try:
                    self._change(changes)
                except BadInput:  # two readings of different moments may contradict each other on the way
                    pass
                else:
                    return
        self._engine.load(now)
        self.loads += 1

    def _change(self, changes: ClusterChanges) -> None:
        engine = self._engine
        for job in changes.release:
            engine.release(job)
        engine.update(
            remove_jobs=changes.remove_jobs,
            add_jobs=changes.add_jobs,
            nodes=changes.nodes,
            expected_end_ms=changes.expected_end_ms,
            priority=changes.priorities,
            now_ms=changes.now_ms,
        )
        for running in changes.adopt:
            engine.adopt(running, started_ms=running.started_ms, expected_end_ms=running.expected_end_ms)
