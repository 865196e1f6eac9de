"""An engine under a scheduling policy: told what happens, asked who starts."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass

from placeopt.engine import Engine
from placeopt.methods import method_of
from placeopt.model import Instance, Job, Option, Placement, Plan
from placeopt.model.plan import InstanceRef, Level, PolicyRef
from placeopt.model.scenario import Scenario
from placeopt.model.scheduling import Scheduling
from placeopt.problem.classes import class_key
from placeopt.simulate.choice import Choice
from placeopt.simulate.clusters import Clusters
from placeopt.simulate.turns import Turns
from placeopt.simulate.waiting import Queue, Waiting

STAYS = {"movable": False, "shrinkable": False, "preemptible": False}
"""What runs stays where it is: changes to running jobs are not simulated."""


class Stopped(Exception):
    """The simulation was asked to stop while it decided; the decision is not taken."""


@dataclass(frozen=True)
class Limits:
    """How whole rounds are solved. ``deterministic``: by work instead of time, so that a log can be repeated."""

    seed: int = 0
    time_limit_s: float = 60.0
    deterministic: bool = True


class Scheduler(ABC):
    """
    A resident cluster that is told of arrivals and ends, and what decides on its waiting jobs.

    Jobs are handed on without run times where nobody reads them, so that jobs that ask for the same are alike.
    """

    def __init__(self, engine: Engine, scenario: Scenario, scheduling: Scheduling) -> None:
        self.policy = scheduling.policy
        self._engine, self._scheduling = engine, scheduling
        self._coming: list[Job] = []
        self.cut = 0
        """Rounds that the time limit cut short."""
        self._timed = _reads_times(scheduling)
        self._choice = None if scheduling.choice == "any" else Choice(scheduling.choice, scenario.cluster)
        self._options: dict[tuple[Option, ...], tuple[Option, ...]] = {}
        begin = {held.job for held in scenario.running}
        there = (arrival.job for arrival in scenario.arrivals if arrival.job.id in begin)
        engine.load(
            Instance(
                name=scenario.name,
                cluster=scenario.cluster,
                jobs=tuple(there),
                running=tuple(held.model_copy(update=STAYS) for held in scenario.running),
                slowdowns=scenario.slowdowns,
                policy=scheduling.policy,
            )
        )

    @property
    @abstractmethod
    def num_waiting(self) -> int:
        """Jobs that wait."""

    @property
    def looks_ahead(self) -> bool:
        """Whether it wants to know when running jobs are expected to end."""
        return self.policy.postpone.rule == "lookahead"

    @abstractmethod
    def arrive(self, job: Job) -> None:
        """Take in a job."""

    def end(self, placement: Placement) -> None:
        """Note that a job has ended."""
        self._engine.release(placement.job)

    @abstractmethod
    def decide(
        self, now_ms: int, ends: Mapping[str, int], limits: Limits, cancel: threading.Event | None
    ) -> tuple[Placement, ...]:
        """
        Let jobs start and return their placements; ``ends``: when running jobs are expected to end.

        Raises
        ------
        Stopped
            If ``cancel`` was set meanwhile; nothing has started then.
        """

    def repeat(self, now_ms: int, placements: Iterable[Placement]) -> None:
        """Let jobs start as was decided before; the referee judges again."""
        self._catch_up(now_ms, {})
        engine, policy = self._engine, self.policy
        placed = tuple(placements)
        if not placed:
            return
        plan = Plan(
            instance=InstanceRef(name=engine.snapshot.name, digest=None, revision=engine.revision),
            policy=PolicyRef(name=policy.name, digest=policy.digest, values=policy),
            status="feasible",
            limit="none",
            asked=tuple(placement.job for placement in placed),
            levels=(Level(name="value", sense="max", objective=0, bound=None),),
            gap=None,
            placements=placed,
        )
        engine.commit(plan)

    def told(self, job: Job) -> Job:
        """Return the job as the engine is told of it: in the option settled on, without times that nobody reads."""
        if self._choice is not None and len(job.options) > 1:
            job = job.model_copy(update={"options": (self._choice.of(job.options),)})
        if self._timed:
            return job
        options = self._options.get(job.options)
        if options is None:
            bare = {"run_time_ms": None, "rate_milli": None, "latency_ms": None}
            options = tuple(option.model_copy(update=bare) for option in job.options)
            options = self._options.setdefault(options, options)
            self._options[job.options] = options
        return job.model_copy(update={"options": options})

    def _catch_up(self, now_ms: int, ends: Mapping[str, int]) -> None:
        self._engine.update(add_jobs=self._coming, now_ms=now_ms, expected_end_ms=ends)
        self._coming.clear()


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


def make_scheduler(engine: Engine, scenario: Scenario, scheduling: Scheduling) -> Scheduler:
    """Return what decides under a policy."""
    kind = WholeRounds if scheduling.rounds == "whole" else JobByJob
    return kind(engine, scenario, scheduling)


def make_queue(scheduling: Scheduling, scenario: Scenario) -> Queue:
    """Return the queue that a policy asks for."""
    if scheduling.order == "drf":
        return Turns(scenario.cluster)
    if scheduling.order == "clusters":
        return Clusters(scheduling.clusters or 1, scheduling.batch or 1)
    return Waiting(scheduling.order or "fcfs")


def granted(placement: Placement) -> int:
    """Thousandths of GPUs that a placement holds."""
    return sum(sum(one.gpus.values()) for one in placement.assignments)


def least_milli(option: Option) -> int:
    """Thousandths of GPUs that an option needs at least."""
    return option.workers * option.demand.gpus * option.demand.gpu_milli


def _reads_times(scheduling: Scheduling) -> bool:
    """Tell whether rounds go by run times."""
    method = method_of(scheduling.method)
    order = method.order or scheduling.policy.order
    return scheduling.policy.postpone.rule == "lookahead" or method.shape == "swaf" or order == "swaf"
