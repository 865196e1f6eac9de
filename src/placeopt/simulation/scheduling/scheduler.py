"""What every scheduler does: it keeps an engine up to date and decides what changes in a round."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any

from placeopt.edits import ChangeQueue, SetPolicy, Step, apply
from placeopt.errors import BadInput
from placeopt.live_cluster.changes import ClusterChanges
from placeopt.live_cluster.engine import Engine
from placeopt.model import Instance, Job, Option, Placement, Plan, Policy
from placeopt.model.base import MAX_VALUE, trusted
from placeopt.model.plan import InstanceRef, Level, PolicyRef
from placeopt.simulation.records.scenario import Scenario
from placeopt.simulation.records.scheduling import Scheduling
from placeopt.simulation.scheduling.decision import Decision, RoundView
from placeopt.simulation.scheduling.placement_amounts import Shares
from placeopt.simulation.scheduling.resource_estimator import OPTION_CHOICES, ResourceEstimator, best_option
from placeopt.solving.methods import method_of
from placeopt.solving.params import SolveParams

VALUE_OF_MS = 10**11
"""Value of a job of one millisecond where the value of a job is its rate."""


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
    ``policy`` is that of the rounds: of the scheduling policy, with what the scenario's jobs add to it. ``rounds_cut``
    counts rounds that the time limit cut short. ``read_once``: fields of the policy that no event may change.
    """

    read_once: Collection[str] = tuple(Policy.model_fields)

    def __init__(self, engine: Engine, scenario: Scenario, scheduling: Scheduling, policy: Policy) -> None:
        self.policy = policy
        self._engine, self._scheduling = engine, scheduling
        self._arrivals = {arrival.job.id: arrival for arrival in scenario.arrivals}
        self._arriving: dict[str, Job] = {}
        """Jobs that the engine does not have yet."""
        self.rounds_cut = 0
        rule = scheduling.policy.postpone.rule
        self._reads_run_times = rule == "lookahead" or uses_allowances(scheduling)
        self._judges_utility = rule == "utility"
        choice = OPTION_CHOICES[scheduling.choice]
        self._option_score = None if choice is None else choice(scenario.cluster)
        self._estimator = ResourceEstimator(scenario, scheduling)
        self._shares = Shares(scenario, policy.share_mode)
        self._profiles_count = bool(scenario.slowdowns)
        self._options: dict[tuple[object, ...], tuple[Option, ...]] = {}
        """Options without fields that no rule reads, by all their other fields."""
        self._refuse_policy_steps(scenario)
        if scheduling.changes_jobs and scenario.physics.rule == "sc17":
            raise BadInput(
                f"policy {scheduling.name!r} changes running jobs, which the run-time rule 'sc17' cannot tell of: it "
                "prorates nothing; take the rule 'rate', or another policy"
            )
        begin = {held.job for held in scenario.running}
        there = (self._estimator.of_running(arrival.job) for arrival in scenario.arrivals if arrival.job.id in begin)
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

    def _refuse_policy_steps(self, scenario: Scenario) -> None:
        """Raise `BadInput` for events that change of the policy what is read once, at the beginning."""
        now = Instance(cluster=scenario.cluster, policy=self.policy)
        for number, event in enumerate(scenario.events):
            try:
                now = apply(now, [step for step in event.steps if isinstance(step, SetPolicy | ChangeQueue)])
            except BadInput as error:
                raise BadInput(f"events[{number}].{error}") from None
            for field in self.read_once:
                if getattr(now.policy, field) != getattr(self.policy, field):
                    raise BadInput(
                        f"events[{number}].steps: policy.{field} changes, which {self._scheduling.name!r} reads at the "
                        f"beginning only{'' if field in READ_ONCE else '; take a policy of whole rounds'}"
                    )

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

    def num_rounds_skipped(self, now_ms: int) -> int:
        """Return how many rounds before that of ``now_ms`` were left out, since they could not change anything."""
        del now_ms
        return 0

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

    def edit(self, steps: Sequence[Step], view: RoundView) -> tuple[str, ...]:
        """Carry out steps on the cluster; return the jobs that they stop, which wait with the work that is left."""
        self._catch_up(view.now_ms)
        stopped = self._engine.edit(steps)
        if stopped:
            self._report(remove_jobs=stopped)
        return stopped

    @abstractmethod
    def decide(self, view: RoundView, params: SolveParams, cancel: threading.Event | None) -> Decision:
        """Decide what changes now; raises `Stopped` if ``cancel`` is set meanwhile: nothing has changed then."""

    @abstractmethod
    def repeat(self, view: RoundView, decision: Decision) -> None:
        """Carry out an earlier decision again; the referee checks it again."""

    def _put(self, placements: tuple[Placement, ...]) -> None:
        """Start waiting jobs in ``placements``; raises ``BadInput`` if the referee refuses."""
        if not placements:
            return
        beside = self._engine.snapshot.running
        plan = self._plan(
            None,
            asked=tuple(placement.job for placement in placements),
            placements=self._shares.granted(placements, beside),
        )
        self._commit_plan(plan, placements)

    def _plan(self, digest: str | None, **fields: Any) -> Plan:
        """Return a plan of the present round with some placements, whose value does not matter."""
        engine, policy = self._engine, self.policy
        return Plan(
            instance=InstanceRef(name=engine.snapshot.name, digest=digest, revision=engine.revision),
            policy=PolicyRef(name=policy.name, digest=policy.digest, values=policy),
            status="feasible",
            limit="none",
            levels=(Level(name="value", sense="max", objective=0, bound=None),),
            gap=None,
            **fields,
        )

    def _commit_plan(self, plan: Plan, started: Iterable[Placement]) -> None:
        """Commit a plan; of the jobs that start, those may change later that the scenario lets change."""
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
        if self._option_score is not None and len(job.options) > 1:
            job = job.model_copy(update={"options": (best_option(job.options, self._option_score),)})
        if self._scheduling.worth == "rate":
            job = job.model_copy(update={"options": tuple(by_rate(option) for option in job.options)})
        if self._reads_run_times:
            return job
        read = tuple(map(_read_fields, job.options))
        options = self._options.get(read)
        if options is None:
            bare = dict.fromkeys(UNREAD)
            options = self._options[read] = tuple(option.model_copy(update=bare) for option in job.options)
        return trusted(Job, {**job.__dict__, "options": options})

    def _report(self, **changes: Any) -> None:
        """Report changes to the engine; fields of ``ClusterChanges``."""
        self._engine.apply(ClusterChanges(**changes))

    def _catch_up(self, now_ms: int = 0, ends: Mapping[str, int] | None = None) -> None:
        """Bring the engine up to date with arrivals, time and expected ends."""
        self._report(add_jobs=tuple(self._arriving.values()), now_ms=now_ms, expected_end_ms=ends or {})
        self._arriving.clear()


def by_rate(option: Option) -> Option:
    """Return the option with its rate as value: ``VALUE_OF_MS`` / its predicted run time, at least 1."""
    if not option.run_time_ms or option.workers_min is not None:
        return option
    value = min(MAX_VALUE, max(1, VALUE_OF_MS // option.run_time_ms))
    return option.model_copy(update={"value": value})


def uses_allowances(scheduling: Scheduling) -> bool:
    """Return whether rounds order or shape jobs by waiting allowances (SWAF)."""
    rule = method_of(scheduling.method).greedy
    return rule.shape == "swaf" or (rule.order or scheduling.policy.order) == "swaf"
