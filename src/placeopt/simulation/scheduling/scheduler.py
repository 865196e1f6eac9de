"""An engine under a scheduling policy: told what happens, asked who starts."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass

from placeopt.errors import BadInput
from placeopt.live_cluster.engine import Engine
from placeopt.model import Instance, Job, Option, Placement, Plan, Policy
from placeopt.model.base import MAX_VALUE
from placeopt.model.plan import InstanceRef, Level, PolicyRef
from placeopt.model.scenario import Scenario
from placeopt.model.scheduling import Scheduling
from placeopt.simulation.scheduling.decision import Decision, Scene
from placeopt.simulation.scheduling.option_choice import Choice
from placeopt.simulation.scheduling.resource_estimator import ResourceEstimator
from placeopt.simulation.shares import Shares
from placeopt.solving.methods import method_of

WORTH_OF_MS = 10**11
"""What a job of one millisecond would be worth where jobs are worth their rate."""


class Stopped(Exception):
    """The simulation was asked to stop while it decided; the decision is not taken."""


@dataclass(frozen=True)
class RoundLimits:
    """How whole rounds are solved. ``deterministic``: by work instead of time, so that a log can be repeated."""

    seed: int = 0
    time_limit_s: float = 60.0
    deterministic: bool = True


class Scheduler(ABC):
    """
    A resident cluster that is told of arrivals and ends, and what decides on its jobs.

    Jobs are handed on without run times where nobody reads them, so that jobs that ask for the same are alike.
    """

    def __init__(self, engine: Engine, scenario: Scenario, scheduling: Scheduling, policy: Policy) -> None:
        """``policy``: of the rounds; the scheduling policy's, with what the scenario's jobs add to it."""
        self.policy = policy
        self._engine, self._scheduling = engine, scheduling
        self._arrivals = {arrival.job.id: arrival for arrival in scenario.arrivals}
        self._coming: dict[str, Job] = {}
        self.cut = 0
        """Rounds that the time limit cut short."""
        self._timed = _reads_times(scheduling)
        self._judges_utility = scheduling.policy.postpone.rule == "utility"
        self._choice = None if scheduling.choice == "any" else Choice(scheduling.choice, scenario.cluster)
        self._belief = ResourceEstimator(scenario, scheduling)
        self._shares = Shares(scenario, policy.share_mode)
        self._profiles_count = bool(scenario.slowdowns)
        self._options: dict[tuple[Option, ...], tuple[Option, ...]] = {}
        if scheduling.changes_jobs and scenario.physics.rule == "sc17":
            raise BadInput(
                f"policy {scheduling.name!r} changes running jobs, which the run-time rule 'sc17' cannot tell of: it "
                "prorates nothing; take the rule 'rate', or another policy"
            )
        begin = {held.job for held in scenario.running}
        there = (self._belief.of_running(one.job) for one in scenario.arrivals if one.job.id in begin)
        engine.load(
            Instance(
                name=scenario.name,
                cluster=scenario.cluster,
                jobs=tuple(there),
                running=scenario.running,
                slowdowns=scenario.slowdowns,
                policy=policy,
            )
        )

    @property
    @abstractmethod
    def num_waiting(self) -> int:
        """Jobs that wait."""

    @property
    def wants_round(self) -> bool:
        """Whether a round could change anything."""
        return self.num_waiting > 0

    def wake_ms(self, now_ms: int) -> int | None:
        """Return when the next round is to be held even if nobody comes or ends; None: never."""
        del now_ms
        return None

    @property
    def looks_ahead(self) -> bool:
        """Whether it wants to know when running jobs are expected to end."""
        return self.policy.postpone.rule == "lookahead"

    @abstractmethod
    def arrive(self, job: Job) -> None:
        """Take in a job."""

    @abstractmethod
    def withdraw(self, job: str) -> None:
        """Let a waiting job go."""

    def end(self, placement: Placement, now_ms: int) -> None:
        """Note that a job has ended, or has failed."""
        del now_ms
        self._engine.release(placement.job)

    @abstractmethod
    def decide(self, scene: Scene, limits: RoundLimits, cancel: threading.Event | None) -> Decision:
        """
        Decide what changes now.

        Raises
        ------
        Stopped
            If ``cancel`` was set meanwhile; nothing has changed then.
        """

    @abstractmethod
    def repeat(self, scene: Scene, decision: Decision) -> None:
        """Do again what was decided before; the referee judges again."""

    def _put(self, placements: tuple[Placement, ...]) -> None:
        """Let waiting jobs run where ``placements`` say, or raise ``BadInput`` if the referee refuses."""
        if not placements:
            return
        engine, policy, snapshot = self._engine, self.policy, self._engine.snapshot
        plan = Plan(
            instance=InstanceRef(name=snapshot.name, digest=None, revision=engine.revision),
            policy=PolicyRef(name=policy.name, digest=policy.digest, values=policy),
            status="feasible",
            limit="none",
            asked=tuple(placement.job for placement in placements),
            levels=(Level(name="value", sense="max", objective=0, bound=None),),
            gap=None,
            placements=self._shares.granted(placements, snapshot.running),
        )
        changeable = tuple(one.job for one in placements if self._may_change(one.job))
        engine.commit(plan, movable=changeable, shrinkable=changeable, preemptible=changeable)

    def _may_change(self, job: str) -> bool:
        """Whether a job that starts now may be stopped, moved or resized later."""
        return self._arrivals[job].may_change

    def _withdraw(self, job: str) -> None:
        """Take a waiting job out of the cluster."""
        if self._coming.pop(job, None) is None:
            self._engine.update(remove_jobs=[job])

    def told(self, job: Job) -> Job:
        """
        Return the job as the engine is told of it.

        With the cores settled on, in the option settled on, without times, profiles and minima that nobody reads.
        """
        job = self._belief.of(job)
        unread: dict[str, None] = {}
        if job.profile is not None and not self._profiles_count:
            unread["profile"] = None
        if job.utility_min_thousandths is not None and not self._reads_minimum(job):
            unread["utility_min_thousandths"] = None
        if unread:
            job = job.model_copy(update=unread)
        if self._choice is not None and len(job.options) > 1:
            job = job.model_copy(update={"options": (self._choice.of(job.options),)})
        if self._scheduling.worth == "rate":
            job = job.model_copy(update={"options": tuple(by_rate(option) for option in job.options)})
        if self._timed:
            return job
        options = self._options.get(job.options)
        if options is None:
            bare = {"run_time_ms": None, "rate_milli": None, "latency_ms": None}
            options = tuple(option.model_copy(update=bare) for option in job.options)
            options = self._options.setdefault(options, options)
            self._options[job.options] = options
        return job.model_copy(update={"options": options})

    def _reads_minimum(self, job: Job) -> bool:
        """Tell whether the job's minimal utility decides anything: by the policy, or on options that state theirs."""
        return self._judges_utility or any(option.utility_thousandths is not None for option in job.options)

    def _catch_up(self, now_ms: int, ends: Mapping[str, int]) -> None:
        self._engine.update(add_jobs=self._coming.values(), now_ms=now_ms, expected_end_ms=ends)
        self._coming.clear()


def milli_of(placement: Placement) -> int:
    """Thousandths of GPUs that a placement states: what the job requests, wherever a simulation keeps placements."""
    return sum(sum(one.gpus.values()) for one in placement.assignments)


def by_rate(option: Option) -> Option:
    """Return the option worth its rate: ``WORTH_OF_MS`` / its predicted run time, at least 1."""
    if not option.run_time_ms or option.workers_min is not None:
        return option
    value = min(MAX_VALUE, max(1, WORTH_OF_MS // option.run_time_ms))
    return option.model_copy(update={"value": value})


def least_milli(option: Option) -> int:
    """Thousandths of GPUs that an option needs at least."""
    return option.workers * option.demand.gpus * option.demand.gpu_milli


def _reads_times(scheduling: Scheduling) -> bool:
    """Tell whether rounds go by run times."""
    rule = method_of(scheduling.method).greedy
    order = rule.order or scheduling.policy.order
    return scheduling.policy.postpone.rule == "lookahead" or rule.shape == "swaf" or order == "swaf"
