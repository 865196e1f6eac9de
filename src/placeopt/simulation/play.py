"""The simulation loop: events in the order of time, and the rounds that they cause."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from placeopt import __version__
from placeopt.arguments import expect
from placeopt.edits import ChangeQueue, RemoveJobs, SetPolicy, apply
from placeopt.errors import BadInput
from placeopt.live_cluster.engine import Engine
from placeopt.model import Instance
from placeopt.scheduling.adapt import adapted
from placeopt.scheduling.decision import Decision, RoundView
from placeopt.scheduling.job_by_job import JobByJob
from placeopt.scheduling.policy import Scheduling
from placeopt.scheduling.scheduler import READ_ONCE, Scheduler, Stopped
from placeopt.scheduling.telemetry import Measured
from placeopt.scheduling.whole_rounds import WholeRounds
from placeopt.simulation.endpoints import with_replicas
from placeopt.simulation.event_queue import EventQueue, Kind
from placeopt.simulation.history import History, Rounds
from placeopt.simulation.job_state import JobState
from placeopt.simulation.job_warnings import check_utilisation
from placeopt.simulation.journal import EventLog
from placeopt.simulation.records.scenario import Scenario
from placeopt.simulation.replica_choice import ReplicaChoice
from placeopt.simulation.running_jobs import RunningJobs
from placeopt.simulation.simulated_telemetry import usage_of
from placeopt.solving.params import SolveParams, check_call


@dataclass(frozen=True)
class Tick:
    """How far a simulation is, after a round."""

    now_ms: int
    arrived: int
    ended: int
    running: int
    waiting: int
    jobs: int
    rounds: int


def simulate(
    scenario: Scenario,
    scheduling: Scheduling,
    *,
    seed: int = 0,
    time_limit_s: float = 60.0,
    deterministic: bool = True,
    log: str | os.PathLike[str] | None = None,
    cancel: threading.Event | None = None,
    on_progress: Callable[[Tick], None] | None = None,
) -> History:
    """
    Play a scenario under a policy until no event is left.

    Parameters
    ----------
    scenario
        The cluster, and jobs with their arrivals in milliseconds.
    scheduling
        The scheduling policy, as `named_policy` or a file gives it.
    seed
        Of solvers and of methods that draw.
    time_limit_s, deterministic
        Of whole rounds. In deterministic rounds work ends a stage, and the time is a guard only; otherwise the result
        depends on the machine.
    log
        A file of JSON lines, see `placeopt.simulation.journal`; what it holds is lost.
    cancel
        Set it from another thread to stop between two events, or to give up the current decision.
    on_progress
        Called after every round.

    Returns
    -------
    History
        What happened to every job, until the end or until the simulation was cancelled.

    Raises
    ------
    BadInput
        If an argument is wrong, the policy cannot decide on the scenario's jobs (also by `check_utilisation`), or the
        log cannot be written.
    """
    expect("scenario", scenario, Scenario, "a Scenario, as read_scenario gives it")
    expect("scheduling", scheduling, Scheduling, "a Scheduling, as named_policy gives it")
    params = SolveParams(time_limit_s=time_limit_s, seed=seed, deterministic=deterministic)
    params.check()
    check_call(cancel=cancel, on_progress=on_progress)
    check_utilisation(scenario.as_seen(), scheduling)
    scenario = with_replicas(scenario, scheduling)
    given, scheduling = scheduling, adapted(scheduling, scenario.setting())
    journal = EventLog(log)
    with Engine() as engine:
        simulation = _Simulation(scenario, given, scheduling, engine, journal, params, cancel)
        with journal:  # after the policy was accepted: else an existing log stays as it is
            finished = simulation.play(on_progress)
        return simulation.history(finished=finished)


def _check_policy_steps(scenario: Scenario, scheduling: Scheduling, scheduler: Scheduler) -> None:
    """Raise `BadInput` for events that change of the policy what is read once, at the beginning."""
    now = Instance(cluster=scenario.cluster, policy=scheduler.policy)
    for number, event in enumerate(scenario.events):
        try:
            now = apply(now, [step for step in event.steps if isinstance(step, SetPolicy | ChangeQueue)])
        except BadInput as error:
            raise BadInput(f"events[{number}].{error}") from None
        for field in scheduler.read_once:
            if getattr(now.policy, field) != getattr(scheduler.policy, field):
                raise BadInput(
                    f"events[{number}].steps: policy.{field} changes, which {scheduling.name!r} reads at the "
                    f"beginning only{'' if field in READ_ONCE else '; take a policy of whole rounds'}"
                )


class _Simulation:
    """The state of a simulation."""

    def __init__(
        self,
        scenario: Scenario,
        given: Scheduling,
        scheduling: Scheduling,
        engine: Engine,
        journal: EventLog,
        params: SolveParams,
        cancel: threading.Event | None,
    ) -> None:
        self.scenario, self.scheduling = scenario, given
        self.now = 0
        self._journal, self._params, self._cancel = journal, params, cancel
        self._states = {arrival.job.id: JobState(arrival, arrival.seen) for arrival in scenario.arrivals}
        self._events = EventQueue(scenario.physics.step_ms, given.interval_ms)
        decider = WholeRounds if scheduling.rounds == "whole" else JobByJob
        self._scheduler: Scheduler = decider(engine, scenario.setting(), scheduling)
        if scenario.physics.telemetry:
            self._scheduler.measured = Measured()
        _check_policy_steps(scenario, scheduling, self._scheduler)
        self._placed = RunningJobs(scenario, scheduling, self._states, self._events, self._scheduler.search_ms)
        self._replica_choice = ReplicaChoice(scenario.endpoints, given)
        self._services = {name: None for name, state in self._states.items() if state.arrival.service}
        self._withdrawn: set[str] = set()
        self._jobs_left = len(self._states) - len(self._services)
        self._rounds = Rounds()
        self._num_rounds = self._num_arrived = self._num_ended = 0

    def play(self, on_progress: Callable[[Tick], None] | None) -> bool:
        """Go on until no event is left; return False if it was cancelled before."""
        self._begin()
        while len(self._events) or self._services:
            if self._cancel is not None and self._cancel.is_set():
                return False
            if not len(self._events):
                self._end_services()
                continue
            at, kind, job = self._events.next()
            if kind == "round":
                self.now = at
                if self._scheduler.wants_round:
                    try:
                        self._round()
                    except Stopped:
                        return False
                    if on_progress is not None:
                        on_progress(self._tick())
            elif kind == "edit":
                if self._jobs_left or self._services:
                    self.now = at
                    self._edit(int(job))
            elif job in self._states and job not in self._withdrawn and self._is_due(kind, self._states[job], at):
                self.now = at
                happen = {"arrival": self._arrive, "end": self._end, "failure": self._fail, "leave": self._leave}
                happen[kind](self._states[job])
        left = (name for name in self._states if name not in self._withdrawn)
        stranded = [name for name in left if self._states[name].end_ms is None]
        self._journal.write(t=self.now, e="over", stranded=stranded)
        return True

    def _begin(self) -> None:
        """Write the log's first line, add the events that are known from the start, and start the jobs that run."""
        scenario = self.scenario
        if self._journal.writes:  # digests of a million jobs take ten seconds
            self._journal.write(
                e="scenario",
                version=__version__,
                scenario=scenario.name,
                digest=scenario.digest,
                policy=self.scheduling.digest,
                seed=self._params.seed,
            )
        begin = {held.job for held in scenario.running}
        self._events.add_arrivals(
            (name, state.job.arrival_ms) for name, state in self._states.items() if name not in begin
        )
        for name, state in self._states.items():
            if state.arrival.leaves_ms is not None:
                self._events.add("leave", name, state.arrival.leaves_ms)
        for number, event in enumerate(scenario.events):
            self._events.add("edit", str(number), event.at_ms)
        if scenario.running:
            for held in scenario.running:
                self._states[held.job].arrived = True
            self._num_arrived = len(begin)
            initial = Decision(start=tuple(held.placement for held in scenario.running))
            self._placed.apply(self._placed.requested(initial), self.now)

    @staticmethod
    def _is_due(kind: Kind, state: JobState, at: int) -> bool:
        """Return whether an event still applies; others were superseded."""
        due_at = {"end": state.ends_at, "failure": state.fails_at}
        return due_at[kind] == at if kind in due_at else kind == "arrival" or state.end_ms is None

    def _arrive(self, state: JobState) -> None:
        if not self._comes(state.job.id):
            del self._states[state.job.id], self._services[state.job.id]
            return
        self._journal.write(t=self.now, e="arrival", job=state.job.id)
        state.arrived = True
        self._num_arrived += 1
        self._scheduler.arrive(state.job)
        self._events.round_after("arrival", self.now)

    def _comes(self, job: str) -> bool:
        """Return whether a job arrives; a replica does not if another comes in its place."""
        if not self._replica_choice.concerns(job):
            return True
        return self._replica_choice.comes(job, self._scheduler.waiting(), self._placed.num_idle_gpus())

    def _end(self, state: JobState, event: str = "end") -> None:
        self._journal.write(t=self.now, e=event, job=state.job.id)
        self._measure(state)
        state.end_ms = self.now
        self._num_ended += 1
        self._scheduler.end(self._placed.end(state, self.now), self.now)
        self._events.round_after("end", self.now)
        if not state.arrival.service:
            self._one_less()

    def _measure(self, state: JobState) -> None:
        """Take what was measured of a job that ends; jobs of its profile that have not started are believed anew."""
        measured, job = self._scheduler.measured, state.job
        if measured is None:
            return
        option = state.standing()[1].option
        if measured.note(self._scheduler.predicted(job), option, usage_of([state])):
            waiting = [self._states[other.id] for other in self._scheduler.waiting() if other.profile == job.profile]
            for other in waiting:
                if other.start_ms is None:
                    self._scheduler.withdraw(other.job.id)
                    self._scheduler.arrive(other.job)
        measured.forget(job.id)

    def _one_less(self) -> None:
        """Count a job that has no end before it any more; with the last one services leave."""
        self._jobs_left -= 1
        if not self._jobs_left:
            self._end_services()

    def _edit(self, number: int) -> None:
        """Carry out an event of the scenario: jobs are withdrawn, then the cluster and the policy change."""
        event = self.scenario.events[number]
        for step in event.steps:
            for job in step.jobs if isinstance(step, RemoveJobs) else ():
                self._withdraw(self._states[job])
        stopped = self._scheduler.edit([step for step in event.steps if not isinstance(step, RemoveJobs)], self._view())
        self._journal.write(t=self.now, e="edit", n=number, stop=list(stopped))
        self._placed.apply(Decision(stop=stopped), self.now)
        self._events.round_after("edit", self.now)

    def _withdraw(self, state: JobState) -> None:
        """Remove a job, whether it runs, waits or is still to arrive; one that has ended stays as it is."""
        job = state.job.id
        if state.end_ms is not None:
            return
        self._withdrawn.add(job)
        if state.run is not None:
            self._scheduler.end(self._placed.end(state, self.now), self.now)
        elif state.arrived:
            self._scheduler.withdraw(job)
        if state.arrival.service:
            del self._services[job]
        else:
            self._one_less()

    def _fail(self, state: JobState) -> None:
        failed = self._placed.fail(state, self.now)
        if failed is not None:
            placement, left = failed
            self._journal.write(t=self.now, e="failure", job=state.job.id, left_mib=left)
            self._scheduler.end(placement, self.now)
            self._scheduler.arrive(state.job)
            self._events.round_after("end", self.now)

    def _end_services(self) -> None:
        """Let the services leave that state no time for it, since no other event is left."""
        for job in list(self._services):
            state = self._states[job]
            if state.arrived and state.arrival.leaves_ms is None:
                self._leave(state)

    def _leave(self, state: JobState) -> None:
        """Let a service leave."""
        del self._services[state.job.id]
        if state.run is not None:
            self._end(state, "leave")
            return
        self._journal.write(t=self.now, e="leave", job=state.job.id)
        state.end_ms = self.now
        self._num_ended += 1
        self._scheduler.withdraw(state.job.id)

    def _round(self) -> None:
        self._num_rounds += 1
        waiting = self._scheduler.num_waiting
        view = self._view()
        wall, cpu = time.perf_counter(), time.process_time()
        decision = self._scheduler.decide(view, self._params, self._cancel)
        self._rounds.wall_s.append(time.perf_counter() - wall)
        self._rounds.cpu_s.append(time.process_time() - cpu)
        if decision:
            if self._journal.writes:
                line = self._placed.granted(decision).line()
                self._journal.write(t=self.now, e="round", n=self._num_rounds, waiting=waiting, **line)
                self._journal.flush()
            self._placed.apply(decision, self.now)
        wake = self._scheduler.wake_ms(self.now)
        if wake is not None and len(self._events):  # else nothing differs then
            self._events.round_at(wake)

    def _view(self) -> RoundView:
        return RoundView(
            now_ms=self.now,
            expected_ends=self._placed.expected_ends() if self._scheduler.looks_ahead else {},
            slowdown=self._placed.slowdown,
            if_stopped=lambda job: self._placed.if_stopped(job, self.now),
        )

    def _tick(self) -> Tick:
        return Tick(
            now_ms=self.now,
            arrived=self._num_arrived,
            ended=self._num_ended,
            running=self._placed.num_running,
            waiting=self._scheduler.num_waiting,
            jobs=len(self._states),
            rounds=self._num_rounds,
        )

    def history(self, *, finished: bool) -> History:
        """Return what happened so far."""
        jobs = tuple(state.history(self.now) for state in self._states.values())
        rounds = Rounds(self._num_rounds, self._scheduler.rounds_cut, self._rounds.wall_s, self._rounds.cpu_s)
        return History(self.scenario, self.scheduling, self._params.seed, self.now, finished, jobs, rounds)
