"""Why jobs of a simulation that is over never end."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from placeopt.explain.conflict import conflict
from placeopt.explain.words import constraints, listed
from placeopt.feasibility.fit import fit
from placeopt.feasibility.free_capacity import free_capacity_of
from placeopt.feasibility.minimal_utility import asks_utility, reach, without_minima
from placeopt.feasibility.requirement import requirements_of
from placeopt.model import Instance, Job
from placeopt.problem import State, compile_problem
from placeopt.problem.classes import class_key
from placeopt.simulation.history import History, JobHistory
from placeopt.simulation.scheduling.job_arrays import Division
from placeopt.simulation.scheduling.resource_estimator import ResourceEstimator
from placeopt.solving.methods import method_of

NAMED = 10
"""Jobs that are listed with their reason."""


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
    judge = _Judge(history)
    own = {job.job: judge.cause(job) for job in jobs[: 100 * NAMED]}
    blocker = next((job.job for job in sorted(jobs, key=lambda one: one.arrival_ms) if own.get(job.job)), None)
    told = [NeverEnds(name, why) for name, why in own.items() if why]
    for name, why in own.items():
        if not why:
            told.append(NeverEnds(name, judge.held_back(blocker)))
    return tuple(told[:NAMED])


class _Judge:
    """Tells of single jobs why they never start; jobs alike share the answer."""

    def __init__(self, history: History) -> None:
        scenario, self._scheduling = history.scenario, history.scheduling
        self._cluster = scenario.cluster
        self._belief = ResourceEstimator(scenario, self._scheduling)
        self._records = {arrival.job.id: arrival.job for arrival in scenario.arrivals}
        arrays = self._scheduling.arrays
        self._division = None if arrays is None else Division(scenario, arrays)
        policy = self._scheduling.policy
        if self._division is not None:
            policy = policy.model_copy(update={"queues": self._division.queues})
        self._policy = policy
        self._known: dict[Hashable, str] = {}

    def cause(self, job: JobHistory) -> str:
        """Return why a job by itself never ends; nothing if it could start on the idle cluster."""
        held = [span for span in job.spans if span.end_ms is None]
        if held:
            milli = sum(sum(one.gpus.values()) for one in held[-1].placement.assignments)
            return f"holds {milli / 1000:g} GPUs and waits without end for the rest of its workers"
        record = self._asked(self._records[job.job])
        alike = class_key(record, self._policy)
        if alike not in self._known:
            self._known[alike] = self._alone(record)
        again = f"; it ran out of GPU memory {job.failures} times" if job.failures else ""
        return self._known[alike] + again if self._known[alike] else ""

    def held_back(self, blocker: str | None) -> str:
        """Return why a job that could start on the idle cluster never does."""
        scheduling = self._scheduling
        if blocker is not None and (scheduling.strict or method_of(scheduling.method).greedy.strict):
            return f"waits behind {blocker}: under this policy no job overtakes"
        if scheduling.apart_max_thousandths is not None:
            return "finds room on the idle cluster, but not with its GPUs as close together as the policy asks for"
        return "finds room on the idle cluster; the policy did not start it"

    def _asked(self, job: Job) -> Job:
        job = self._belief.of(job)
        return job if self._division is None else job.model_copy(update={"queue": self._division.of(job)})

    def _alone(self, job: Job) -> str:
        """Judge a job on the idle cluster."""
        problem = compile_problem(Instance(cluster=self._cluster, jobs=(job,), policy=self._policy))
        state = State(problem)
        room, asks = free_capacity_of(state, job), requirements_of(problem, job)
        if fit(room, asks) is None:
            held = constraints(conflict(room, asks), asks, job)
            names = listed([f"{one.name} ({one.asks})" for one in held]) if held else "nothing that can be named"
            return f"finds no place on the idle cluster: {names}"
        if asks_utility(problem, 0):
            found = reach(without_minima(state), 0)
            if found is None or not found.reached:
                best, least = 0 if found is None else found.utility, job.utility_min_thousandths
                return f"its utility is {best}/1000 at best on the idle cluster, it asks for {least}/1000"
        return ""
