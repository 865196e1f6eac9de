"""Jobs of a finished simulation that never end, and the reasons."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from placeopt.explain.remedies import conflict
from placeopt.explain.words import constraints, listed
from placeopt.feasibility.fit import fit
from placeopt.feasibility.free_capacity import free_capacity_of
from placeopt.feasibility.minimal_utility import reach, utility_binds, without_minima
from placeopt.feasibility.requirement import requirements_of
from placeopt.model import Instance, Job
from placeopt.problem import State, compile_problem
from placeopt.problem.classes import class_key
from placeopt.simulation.history import History, JobHistory
from placeopt.simulation.scheduling.job_arrays import ArrayDivision
from placeopt.simulation.scheduling.resource_estimator import ResourceEstimator
from placeopt.solving.methods import method_of

NAMED = 10
"""Number of jobs that are listed with their reason."""


@dataclass(frozen=True)
class NeverEnds:
    """A job that never ends, and why."""

    job: str
    why: str


def never_ending(history: History) -> tuple[NeverEnds, ...]:
    """
    Return the first ten jobs that never end, with the reason; those that hold others back come first.

    A job is judged alone on the idle cluster, by the policy of the round: it finds no place there, or none at its
    minimal utility; it holds GPUs and lacks workers; or it waits behind such a job where nobody overtakes.
    """
    stranded = set(history.stranded)
    jobs = [job for job in history.jobs if job.job in stranded]
    if not jobs:
        return ()
    reasons = _Reasons(history)
    causes = {job.job: reasons.cause(job) for job in jobs[: 100 * NAMED]}
    blocker = next((job.job for job in sorted(jobs, key=lambda one: one.arrival_ms) if causes.get(job.job)), None)
    found = [NeverEnds(name, why) for name, why in causes.items() if why]
    for name, why in causes.items():
        if not why:
            found.append(NeverEnds(name, reasons.held_back(blocker)))
    return tuple(found[:NAMED])


class _Reasons:
    """Why single jobs never start; jobs of one class share the answer."""

    def __init__(self, history: History) -> None:
        scenario, self._scheduling = history.scenario, history.scheduling
        self._cluster = scenario.cluster
        self._estimator = ResourceEstimator(scenario, self._scheduling)
        self._jobs = {arrival.job.id: arrival.job for arrival in scenario.arrivals}
        arrays = self._scheduling.arrays
        self._arrays = None if arrays is None else ArrayDivision(scenario, arrays)
        policy = self._scheduling.policy
        if self._arrays is not None:
            policy = policy.model_copy(update={"queues": self._arrays.queues})
        self._policy = policy
        self._cause_of_class: dict[Hashable, str] = {}

    def cause(self, job: JobHistory) -> str:
        """Return why a job by itself never ends; an empty text if it could start on the idle cluster."""
        held = [span for span in job.spans if span.end_ms is None]
        if held:
            milli = sum(sum(one.gpus.values()) for one in held[-1].placement.assignments)
            return f"holds {milli / 1000:g} GPUs and waits without end for the rest of its workers"
        requested = self._requested(self._jobs[job.job])
        job_class = class_key(requested, self._policy)
        if job_class not in self._cause_of_class:
            self._cause_of_class[job_class] = self._alone(requested)
        again = f"; it ran out of GPU memory {job.failures} times" if job.failures else ""
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
            binding = constraints(conflict(free, requirements), requirements, job)
            names = listed([f"{one.name} ({one.asks})" for one in binding]) if binding else "nothing that can be named"
            return f"finds no place on the idle cluster: {names}"
        if utility_binds(problem, 0):
            found = reach(without_minima(state), 0)
            if found is None or not found.reached:
                best, least = 0 if found is None else found.utility, job.utility_min_thousandths
                return f"its utility is {best}/1000 at best on the idle cluster, it asks for {least}/1000"
        return ""
