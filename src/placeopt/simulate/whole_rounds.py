"""Rounds that place all waiting jobs together."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping

from placeopt.engine import Engine
from placeopt.model import Job, Placement
from placeopt.model.scenario import Scenario
from placeopt.model.scheduling import Scheduling
from placeopt.simulate.scheduler import Limits, Scheduler, Stopped


class WholeRounds(Scheduler):
    """All waiting jobs together, by any method."""

    def __init__(self, engine: Engine, scenario: Scenario, scheduling: Scheduling) -> None:
        super().__init__(engine, scenario, scheduling)
        self._waiting: dict[str, None] = {}

    @property
    def num_waiting(self) -> int:
        """See ``Scheduler``."""
        return len(self._waiting)

    def arrive(self, job: Job) -> None:
        """See ``Scheduler``."""
        self._coming.append(self.told(job))
        self._waiting[job.id] = None

    def decide(
        self, now_ms: int, ends: Mapping[str, int], limits: Limits, cancel: threading.Event | None
    ) -> tuple[Placement, ...]:
        """See ``Scheduler``."""
        self._catch_up(now_ms, ends)
        plan = self._engine.place(
            method=self._scheduling.method,
            time_limit_s=limits.time_limit_s,
            seed=limits.seed,
            deterministic=limits.deterministic,
            warm=False,
            prove=False,
            cancel=cancel,
        )
        if cancel is not None and cancel.is_set():
            raise Stopped
        self.cut += plan.limit == "time"
        self._engine.commit(plan)
        started = tuple(placement for placement in plan.placements if placement.job in self._waiting)
        for placement in started:
            del self._waiting[placement.job]
        return started

    def repeat(self, now_ms: int, placements: Iterable[Placement]) -> None:
        """See ``Scheduler``."""
        placed = tuple(placements)
        super().repeat(now_ms, placed)
        for placement in placed:
            self._waiting.pop(placement.job, None)
