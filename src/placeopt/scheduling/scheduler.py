"""What every scheduler does: it keeps an engine up to date and decides what changes in a round."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from placeopt.edits import Step
from placeopt.errors import BadInput
from placeopt.live_cluster.changes import ClusterChanges
from placeopt.live_cluster.engine import Engine
from placeopt.model import Job, Option, Placement, Plan, Policy
from placeopt.model.base import trusted
from placeopt.model.plan import InstanceRef, Level, PolicyRef
from placeopt.scheduling.decision import Decision, RoundView
from placeopt.scheduling.long_waits import LongWaits
from placeopt.scheduling.placement_amounts import Shares
from placeopt.scheduling.policy import Scheduling
from placeopt.scheduling.predictions import predicts
from placeopt.scheduling.request import requests
from placeopt.scheduling.resource_estimator import ResourceEstimator
from placeopt.scheduling.setting import ArrivingJob, Setting
from placeopt.scheduling.telemetry import Measured
from placeopt.solving.held_room import held_for
from placeopt.solving.methods import method_of
from placeopt.solving.params import SolveParams

UNREAD = ("run_time_ms", "rate_milli", "latency_ms")
"""Fields of options that decide where no rule reads run times."""
_read_fields = attrgetter(*(name for name in Option.model_fields if name not in UNREAD))


READ_ONCE = frozenset({"share_mode", "jobs_per_gpu_max", "postpone"})
"""Fields of the policy by which a simulation is set up."""


class Stopped(Exception):
    """The simulation was cancelled during a decision, which is not made."""


class Scheduler(ABC):
    """
    A live cluster that follows arrivals and ends, and the decisions on its jobs.

    The engine gets jobs without run times where no rule reads them, so that jobs with equal demands are of one class.
    ``policy`` is that of the rounds: of the scheduling policy, with what the jobs add to it. ``rounds_cut`` counts
    rounds that the time limit cut short. ``read_once``: fields of the policy that may not change later.
    """

    read_once: Collection[str] = tuple(Policy.model_fields)

    def __init__(self, engine: Engine, setting: Setting, scheduling: Scheduling, policy: Policy) -> None:
        self.policy = policy
        self._engine, self._scheduling = engine, scheduling
        self._arrivals: dict[str, ArrivingJob] = {}
        self._number: dict[str, int] = {}
        """Jobs in the order in which they became known."""
        self.shares = Shares(policy.share_mode)
        for job in setting.known:
            self.announce(job)
        self._arriving: dict[str, Job] = {}
        """Jobs that the engine does not have yet."""
        self.rounds_cut = 0
        rule = scheduling.policy.postpone.rule
        self._reads_run_times = rule == "lookahead" or uses_allowances(scheduling)
        self._judges_utility = rule == "utility"
        self.predicted = predicts(scheduling, setting.cluster)
        """Returns a job as the policy predicts it, before anything is measured."""
        self.measured: Measured | None = None
        """What was measured of earlier jobs; None: nothing is."""
        self._requested = requests(scheduling, setting.cluster)
        self._estimator = ResourceEstimator(setting, scheduling)
        self._profiles_count = bool(setting.beginning.slowdowns)
        self._long_waits = LongWaits(scheduling)
        self._options: dict[tuple[object, ...], tuple[Option, ...]] = {}
        """Options without fields that no rule reads, by all their other fields."""
        if scheduling.changes_jobs and not setting.prorates:
            raise BadInput(
                f"policy {scheduling.name!r} changes running jobs, which the run-time rule 'sc17' cannot tell of: it "
                "prorates nothing; take the rule 'rate', or another policy"
            )
        begin = setting.beginning
        jobs = tuple(self.queued(self._estimator.of_running(job)) for job in begin.jobs)
        engine.load(begin.model_copy(update={"jobs": jobs, "policy": policy}))

    def believes(self, job: Job) -> Job:
        """Return a job as the policy believes it to be: as it is predicted, corrected by what was measured."""
        job = self.predicted(job)
        return job if self.measured is None else self.measured.corrected(job)

    def announce(self, arriving: ArrivingJob) -> None:
        """Learn of a job that may arrive from now on, or is changed."""
        job = arriving.job
        self._arrivals[job.id] = arriving
        self._number.setdefault(job.id, len(self._number))
        self.shares.learn(job)

    @property
    @abstractmethod
    def num_waiting(self) -> int:
        """Jobs that wait."""

    @abstractmethod
    def waiting(self) -> Iterable[Job]:
        """Return the jobs that wait."""

    @property
    def search_ms(self) -> Mapping[str, int]:
        """Job -> time that it loses after its first start, while numbers of cores are tried for it."""
        return self._estimator.search_ms

    @property
    def wants_round(self) -> bool:
        """Whether a round could change anything."""
        return self.num_waiting > 0

    def wake_ms(self, now_ms: int) -> int | None:
        """Return when the next round is held even if no job arrives or ends; None: at no time."""
        del now_ms
        return None

    @property
    def looks_ahead(self) -> bool:
        """Whether decisions read when running jobs are expected to end."""
        return self.policy.postpone.rule == "lookahead"

    @abstractmethod
    def arrive(self, job: Job) -> None:
        """Let a job wait."""

    @abstractmethod
    def withdraw(self, job: str) -> None:
        """Remove a waiting job."""

    def end(self, placement: Placement, now_ms: int) -> None:
        """Free what a job held that has ended or failed."""
        del now_ms
        self._report(release=(placement.job,))

    def queued(self, job: Job) -> Job:
        """Return a job in the queue whose limits it is under here."""
        return job

    def edit(self, steps: Sequence[Step], view: RoundView) -> tuple[str, ...]:
        """Carry out steps on the cluster; return the jobs that they stop, which wait with the work that is left."""
        self.catch_up(view.now_ms)
        stopped = self._engine.edit(steps)
        if stopped:
            self._report(remove_jobs=stopped)
        return stopped

    @abstractmethod
    def decide(self, view: RoundView, params: SolveParams, cancel: threading.Event | None) -> Decision:
        """Decide what changes now; raises `Stopped` if ``cancel`` is set meanwhile: nothing has changed then."""

    def _put(self, placement: Placement) -> None:
        """Start a waiting job in a placement; raises ``BadInput`` if the referee refuses."""
        engine, policy = self._engine, self.policy
        plan = Plan(
            instance=InstanceRef(name=engine.snapshot.name, digest=None, revision=engine.revision),
            policy=PolicyRef(name=policy.name, digest=policy.digest, values=policy),
            status="feasible",
            limit="none",
            levels=(Level(name="value", sense="max", objective=0, bound=None),),
            gap=None,
            asked=(placement.job,),
            placements=self.shares.granted((placement,), engine.snapshot.running),
        )
        self._commit_plan(plan, (placement,))

    def _commit_plan(self, plan: Plan, started: Iterable[Placement]) -> None:
        """Commit a plan; of the jobs that start, those may change later that may."""
        changeable = tuple(placement.job for placement in started if self._may_change(placement.job))
        self._engine.commit(plan, movable=changeable, shrinkable=changeable, preemptible=changeable)

    def _may_change(self, job: str) -> bool:
        """Whether a job that starts now may be stopped, moved or resized later."""
        return self._arrivals[job].may_change

    def _withdraw(self, job: str) -> None:
        """Remove a waiting job from the cluster."""
        if self._arriving.pop(job, None) is None:
            self._report(remove_jobs=(job,))

    def engine_job(self, job: Job) -> Job:
        """Return the job as the engine gets it: with chosen cores and option, without fields that no rule reads."""
        self._long_waits.note(job)
        job = self._estimator.of(job)
        unread: dict[str, None] = {}
        if job.profile is not None and not self._profiles_count:
            unread["profile"] = None
        # the minimum matters by the policy, or for options that state their utility
        states_utility = any(option.utility_thousandths is not None for option in job.options)
        if job.utility_min_thousandths is not None and not (self._judges_utility or states_utility):
            unread["utility_min_thousandths"] = None
        if unread:
            job = job.model_copy(update=unread)
        job = self._requested(job)
        if self._reads_run_times:
            return job
        read = tuple(map(_read_fields, job.options))
        options = self._options.get(read)
        if options is None:
            bare = dict.fromkeys(UNREAD)
            options = self._options[read] = tuple(option.model_copy(update=bare) for option in job.options)
        return trusted(Job, {**job.__dict__, "options": options})

    def _hold_room(self) -> str:
        """Hold room for the job that has waited longest, as the policy asks; return that job, or an empty text."""
        if self._long_waits.after_ms is None:
            return ""
        now = self._engine.snapshot
        held = self._long_waits.with_room(now, deterministic=True)
        if held.holds != now.holds:
            self._report(holds=held.holds)
        return held_for(held)

    def _report(self, **changes: Any) -> None:
        """Report changes to the engine; fields of ``ClusterChanges``."""
        self._engine.apply(ClusterChanges(**changes))

    def catch_up(self, now_ms: int = 0, ends: Mapping[str, int] | None = None) -> None:
        """Bring the engine up to date with arrivals, time and expected ends."""
        self._report(add_jobs=tuple(self._arriving.values()), now_ms=now_ms, expected_end_ms=ends or {})
        self._arriving.clear()


def uses_allowances(scheduling: Scheduling) -> bool:
    """Return whether rounds order or shape jobs by waiting allowances (SWAF)."""
    rule = method_of(scheduling.method).greedy
    return rule.shape == "swaf" or (rule.order or scheduling.policy.order) == "swaf"
