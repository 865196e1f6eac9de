"""What a summary warns of: jobs without the estimates that a policy reads, and jobs that never end."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from placeopt.errors import BadInput
from placeopt.explain.rules import conflicting
from placeopt.explain.words import constraints, listed
from placeopt.feasibility.fit import fit
from placeopt.feasibility.free_capacity import free_capacity_of
from placeopt.feasibility.minimal_utility import reach, utility_binds, without_minima
from placeopt.feasibility.requirement import requirements_of
from placeopt.model import Instance, Job, Option
from placeopt.problem import State, compile_problem
from placeopt.problem.classes import class_key
from placeopt.readable import gpus, plural
from placeopt.scheduling.adapt import adapted
from placeopt.scheduling.division import division_of
from placeopt.scheduling.policy import Scheduling
from placeopt.scheduling.queue_orders import queue_order
from placeopt.scheduling.resource_estimator import ResourceEstimator
from placeopt.scheduling.rules import PREEMPTION_RULES
from placeopt.scheduling.scheduler import uses_allowances
from placeopt.scheduling.waiting_queue import LacksEstimate, lacks_latency, lacks_run_time
from placeopt.simulation.history import History, JobHistory
from placeopt.simulation.records.scenario import Scenario
from placeopt.solving.methods import method_of

NAMED = 10
"""Number of jobs that are listed by name."""


@dataclass(frozen=True)
class MissingEstimates:
    """Jobs without a run time estimate under a policy that reads one and cannot distinguish them by it."""

    jobs: int
    first: tuple[str, ...]
    """The first ten of them, in the order of the scenario."""
    read_by: tuple[str, ...]
    """The parts of the policy that read estimates of these jobs."""

    @property
    def words(self) -> str:
        """What is missing, in words that follow the name of the policy."""
        names = ", ".join(self.first) + (f" and {self.jobs - len(self.first):,} more" if self.jobs > NAMED else "")
        jobs = "1 job states" if self.jobs == 1 else f"{self.jobs:,} jobs state"
        return f"goes by run time estimates ({', '.join(self.read_by)}), and {jobs} none: {names}"


def missing_estimates(scenario: Scenario, scheduling: Scheduling) -> MissingEstimates | None:
    """
    Return which jobs lack an estimate that the policy reads; None if it reads none, or none is missing.

    An estimate is ``run_time_ms`` of a job's options. An expected completion time replaces it where the policy reads
    that alone, and ``latency_ms`` where it reads latencies (GENIE). Services have no run time.
    """
    scenario = scenario.as_seen()
    parts = _reading_parts(adapted(scheduling, scenario.setting()))
    jobs: dict[str, None] = {}
    read_by: dict[str, None] = {}
    for arrival in scenario.arrivals if parts else ():
        for words, lacks in parts.items():
            if not arrival.service and lacks(arrival.job):
                jobs[arrival.job.id] = None
                read_by[words] = None
    if not jobs:
        return None
    return MissingEstimates(len(jobs), tuple(jobs)[:NAMED], tuple(words for words in parts if words in read_by))


def without_utilisation(scenario: Scenario, scheduling: Scheduling) -> tuple[str, ...]:
    """
    Return the jobs with GPUs that state no utilisation, under a policy that overcommits GPUs by it (Horus, OBP, PAB).

    Such a job counts as using nothing of its GPUs. Empty where the policy goes by no utilisation, as do those that
    share a GPU by slowdowns of profiles where the scenario states these.
    """
    policy = adapted(scheduling, scenario.setting()).policy
    if policy.share_mode != "overcommit" or (policy.interference.model != "curve" and scenario.slowdowns):
        return ()
    return tuple(arrival.job.id for arrival in scenario.arrivals if any(map(_lacks_utilisation, arrival.job.options)))


def check_utilisation(scenario: Scenario, scheduling: Scheduling) -> None:
    """
    Refuse a policy that overcommits GPUs by utilisation where no job states any.

    Raises
    ------
    BadInput
        If so. All jobs would count as using nothing of a GPU: each GPU would take as many as the policy allows, and all
        of them would run at full speed.
    """
    lacking = without_utilisation(scenario, scheduling)
    with_gpus = sum(any(option.demand.gpus for option in arrival.job.options) for arrival in scenario.arrivals)
    replicas = any(endpoint.gpu.demand.gpu_utilisation_percent for endpoint in scenario.endpoints)
    if lacking and len(lacking) == with_gpus and not replicas:
        most = adapted(scheduling, scenario.setting()).policy.jobs_per_gpu_max
        raise BadInput(
            f"policy {scheduling.name!r} lets jobs share a GPU by their utilisation, and no job of scenario "
            f"{scenario.name!r} states any: up to {most} would run on "
            "each GPU at full speed; state gpu_utilisation_percent in the demands of jobs, or take a policy that "
            "shares no GPU, such as best-fit"
        )


def _lacks_utilisation(option: Option) -> bool:
    return option.demand.gpus > 0 and not option.demand.gpu_utilisation_percent


def _reading_parts(scheduling: Scheduling) -> dict[str, LacksEstimate]:
    """Return the parts of a policy that read run times, and whether a job lacks what they read."""
    order, preemption = queue_order(scheduling), PREEMPTION_RULES[scheduling.preempts]
    parts: dict[str, LacksEstimate] = {}
    if order.lacks_estimate is not None:
        parts[f"order {scheduling.order.rule if scheduling.order else 'fcfs'}"] = order.lacks_estimate
    if uses_allowances(scheduling):
        parts["order swaf"] = lacks_latency
    if preemption.lacks_estimate is not None:
        parts[f"preempts {scheduling.preempts.rule}"] = preemption.lacks_estimate
    if preemption.stops_jobs and scheduling.restarts_max_thousandths is not None:
        parts["limit of restarts"] = lacks_run_time
    if scheduling.worth == "rate":
        parts["worth by rate"] = lambda job: lacks_run_time(job) and job.options[0].workers_min is None
    if scheduling.divides is not None and scheduling.divides.reads_run_times:
        parts[f"parts of {scheduling.divides.rule} by demand"] = lacks_run_time
    if scheduling.policy.postpone.rule == "lookahead":
        parts["look-ahead"] = lacks_run_time
    return parts


@dataclass(frozen=True)
class NeverEnds:
    """A job that never ends, and why."""

    job: str
    why: str


def never_ending(history: History) -> tuple[NeverEnds, ...]:
    """
    Return the first ten jobs that never end, with the reason; those that hold others back come first.

    A job is judged alone on the idle cluster, by the policy of the round: it finds no place there, or none at its
    minimal utility; it holds GPUs and lacks workers; or it waits behind such a job under a policy without overtaking.
    """
    stranded = set(history.stranded)
    jobs = [job for job in history.jobs if job.job in stranded]
    if not jobs:
        return ()
    reasons = _Reasons(history)
    causes = {job.job: reasons.cause(job) for job in jobs[: 100 * NAMED]}
    blocker = next((job.job for job in sorted(jobs, key=lambda job: job.arrival_ms) if causes.get(job.job)), None)
    warnings = [NeverEnds(name, why) for name, why in causes.items() if why]
    for name, why in causes.items():
        if not why:
            warnings.append(NeverEnds(name, reasons.held_back(blocker)))
    return tuple(warnings[:NAMED])


class _Reasons:
    """Why single jobs never start; jobs of one class share the answer."""

    def __init__(self, history: History) -> None:
        scenario = history.scenario.as_seen()
        self._scheduling = adapted(history.scheduling, scenario.setting())
        self._cluster = scenario.hardware
        self._estimator = ResourceEstimator(scenario.setting(), self._scheduling)
        self._jobs = {arrival.job.id: arrival.job for arrival in scenario.arrivals}
        self._arrays = division_of(scenario.setting(), self._scheduling)
        policy = self._scheduling.policy
        if self._arrays is not None:
            policy = policy.model_copy(update={"queues": self._arrays.queues})
        self._policy = policy
        self._cause_of_class: dict[Hashable, str] = {}

    def cause(self, job: JobHistory) -> str:
        """Return why a job by itself never ends; an empty text if it could start on the idle cluster."""
        held = [span for span in job.spans if span.end_ms is None]
        if held:
            milli = sum(sum(assignment.gpus.values()) for assignment in held[-1].placement.assignments)
            held_text = f"{gpus(milli)} GPU{'s' * (milli != 1000)}"
            return f"holds {held_text} and waits without end for the rest of its workers"
        requested = self._requested(self._jobs[job.job])
        job_class = class_key(requested, self._policy)
        if job_class not in self._cause_of_class:
            self._cause_of_class[job_class] = self._alone(requested)
        again = f"; it ran out of GPU memory {plural(job.failures, 'time')}" if job.failures else ""
        return self._cause_of_class[job_class] + again if self._cause_of_class[job_class] else ""

    def held_back(self, blocker: str | None) -> str:
        """Return why a job that could start on the idle cluster never does."""
        scheduling = self._scheduling
        if blocker is not None and (scheduling.strict or method_of(scheduling.method).greedy.strict):
            return f"waits behind {blocker}: under this policy no job overtakes"
        if scheduling.apart_max_thousandths is not None:
            return "finds room on the idle cluster, but not with its GPUs as close together as the policy asks for"
        return "finds room on the idle cluster; the policy did not start it"

    def _requested(self, job: Job) -> Job:
        job = self._estimator.of(job)
        return job if self._arrays is None else job.model_copy(update={"queue": self._arrays.of(job)})

    def _alone(self, job: Job) -> str:
        """Return why a job does not fit on the idle cluster; an empty text if it does."""
        problem = compile_problem(Instance(cluster=self._cluster, jobs=(job,), policy=self._policy))
        state = State(problem)
        free, requirements = free_capacity_of(state, job), requirements_of(problem, job)
        if fit(free, requirements) is None:
            binding = constraints(conflicting(free, requirements), requirements, job)
            names = (
                listed([f"{constraint.name} ({constraint.asks})" for constraint in binding])
                if binding
                else "nothing that can be named"
            )
            return f"finds no place on the idle cluster: {names}"
        if utility_binds(problem, 0):
            idle = reach(without_minima(state), 0)
            if idle is None or not idle.reached:
                best, least = 0 if idle is None else idle.utility, job.utility_min_thousandths
                return f"its utility is {best}/1000 at best on the idle cluster, it asks for {least}/1000"
        return ""
