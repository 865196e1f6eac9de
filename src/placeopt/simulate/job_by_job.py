"""Rounds that place one job after the other, in the order of a queue."""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterable, Mapping

from placeopt.engine import Engine
from placeopt.model import Job, Placement
from placeopt.model.scenario import Scenario
from placeopt.model.scheduling import Scheduling
from placeopt.problem.classes import class_key
from placeopt.simulate.clusters import Clusters
from placeopt.simulate.scheduler import Limits, Scheduler, Stopped, granted, least_milli
from placeopt.simulate.turns import Turns
from placeopt.simulate.waiting import Queue, Waiting


class JobByJob(Scheduler):
    """One job after the other, in the order of a queue, by a method of greedy."""

    def __init__(self, engine: Engine, scenario: Scenario, scheduling: Scheduling) -> None:
        super().__init__(engine, scenario, scheduling)
        self._queue = make_queue(scheduling, scenario)
        self._jobs = {arrival.job.id: arrival.job for arrival in scenario.arrivals}
        for held in scenario.running:
            self._queue.holds(self._jobs[held.job], held, 1)
        self._shape: dict[str, Hashable] = {}
        self._least: dict[Hashable, int] = {}
        self._hopeless: set[Hashable] = set()
        gpus = {machine.id: len(machine.gpus) for machine in scenario.cluster.machines}
        self._free_milli = 1000 * sum(gpus[node.machine] for node in scenario.cluster.nodes)
        self._free_milli -= sum(granted(held) for held in scenario.running)

    @property
    def num_waiting(self) -> int:
        """See ``Scheduler``."""
        return self._queue.number

    def arrive(self, job: Job) -> None:
        """See ``Scheduler``."""
        told = self.told(job)
        self._coming.append(told)
        shape = class_key(told, self.policy)
        if shape not in self._least:
            overcommitted = self.policy.share_mode == "overcommit"
            self._least[shape] = 0 if overcommitted else min(least_milli(option) for option in told.options)
        self._shape[job.id] = shape
        self._queue.add(job, shape)

    def end(self, placement: Placement) -> None:
        """See ``Scheduler``."""
        super().end(placement)
        self._free_milli += granted(placement)
        self._queue.holds(self._jobs[placement.job], placement, -1)
        self._hopeless.clear()

    def decide(
        self, now_ms: int, ends: Mapping[str, int], limits: Limits, cancel: threading.Event | None
    ) -> tuple[Placement, ...]:
        """See ``Scheduler``. A kind of job that found no room is asked again when something has ended."""
        del limits
        self._catch_up(now_ms, ends)
        if self.policy.postpone.rule != "none":  # a place may become good enough by what starts beside it
            self._hopeless.clear()
        started: list[Placement] = []
        for job, shape in self._queue.in_order(set() if self._scheduling.strict else self._hopeless, now_ms):
            if cancel is not None and cancel.is_set() and not started:
                raise Stopped
            placement = self._place(job, shape)
            if placement is not None:
                self._note(placement, shape)
                started.append(placement)
            else:
                self._hopeless.add(shape)
                if self._scheduling.strict:
                    break
        return tuple(started)

    def repeat(self, now_ms: int, placements: Iterable[Placement]) -> None:
        """See ``Scheduler``."""
        placed = tuple(placements)
        super().repeat(now_ms, placed)
        for placement in placed:
            self._note(placement, self._shape[placement.job])

    def _note(self, placement: Placement, shape: Hashable) -> None:
        """Note that a job has started."""
        job = placement.job
        self._queue.take(job, shape)
        self._queue.holds(self._jobs[job], placement, 1)
        del self._shape[job]
        self._free_milli -= granted(placement)

    def _place(self, job: str, shape: Hashable) -> Placement | None:
        if shape in self._hopeless or self._least[shape] > self._free_milli:
            return None
        plan = self._engine.place([job], method=self._scheduling.method)
        if not plan.placements:
            return None
        self._engine.commit(plan)
        return plan.placements[0]


def make_queue(scheduling: Scheduling, scenario: Scenario) -> Queue:
    """Return the queue that a policy asks for."""
    if scheduling.order == "drf":
        return Turns(scenario.cluster)
    if scheduling.order == "clusters":
        return Clusters(scheduling.clusters or 1, scheduling.batch or 1)
    return Waiting(scheduling.order or "fcfs")
