"""The simulation itself: what happens next, who starts, when it ends."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from placeopt import __version__
from placeopt.arguments import expect
from placeopt.live_cluster.engine import Engine
from placeopt.model import Placement, Running
from placeopt.model.scenario import Scenario
from placeopt.model.scheduling import Scheduling
from placeopt.simulation.event_queue import EventQueue, Kind
from placeopt.simulation.history import History, Rounds
from placeopt.simulation.job_state import JobState
from placeopt.simulation.journal import EventLog
from placeopt.simulation.replicas import with_replicas
from placeopt.simulation.running_jobs import RunningJobs
from placeopt.simulation.scheduling.decision import Decision, Scene, told_decision
from placeopt.simulation.scheduling.job_by_job import JobByJob
from placeopt.simulation.scheduling.scheduler import RoundLimits, Scheduler, Stopped
from placeopt.simulation.scheduling.whole_rounds import WholeRounds
from placeopt.solving.params import SolveParams, check_call


@dataclass(frozen=True)
class Tick:
    """News of a simulation."""

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
    resume: bool = False,
    cancel: threading.Event | None = None,
    on_progress: Callable[[Tick], None] | None = None,
) -> History:
    """
    Play a scenario under a policy until nothing happens any more.

    Parameters
    ----------
    seed
        Of solvers and of methods that draw.
    time_limit_s, deterministic
        Of whole rounds. In deterministic rounds work ends a stage, and the time is a guard only; otherwise what comes
        out depends on the machine.
    log
        A file of JSON lines, ``simulate.journal``.
    resume
        Go on with what the log tells.
    cancel
        Set from elsewhere: stop between two events, or give up the round that is being decided. The log stays good.
    on_progress
        Called after every round.

    Raises
    ------
    BadInput
        If an argument is wrong, the policy cannot decide on the scenario's jobs, or the log to go on with is of
        something else.
    """
    expect("scenario", scenario, Scenario, "a Scenario, as read_scenario gives it")
    expect("scheduling", scheduling, Scheduling, "a Scheduling, as named_policy gives it")
    SolveParams(time_limit_s=time_limit_s, seed=seed).check()
    check_call(cancel=cancel, on_progress=on_progress)
    scenario = with_replicas(scenario, scheduling)
    journal = EventLog(log, resume=resume)
    with Engine() as engine:
        game = _Game(scenario, scheduling, engine, journal, RoundLimits(seed, time_limit_s, deterministic), cancel)
        with journal:  # only now: what the policy refuses leaves no log, and an older one as it is
            finished = game.play(on_progress)
        return game.history(finished=finished)


class _Game:
    """The state of a simulation."""

    def __init__(
        self,
        scenario: Scenario,
        scheduling: Scheduling,
        engine: Engine,
        journal: EventLog,
        limits: RoundLimits,
        cancel: threading.Event | None,
    ) -> None:
        self.scenario, self.scheduling = scenario, scheduling
        self.now = 0
        self._journal, self._limits, self._cancel = journal, limits, cancel
        self._stories = {arrival.job.id: JobState(arrival, arrival.job) for arrival in scenario.arrivals}
        self._agenda = EventQueue(scenario.physics.step_ms, scheduling.interval_ms)
        self._places = RunningJobs(scenario, scheduling, self._stories, self._agenda)
        decider = WholeRounds if scheduling.rounds == "whole" else JobByJob
        self._scheduler: Scheduler = decider(engine, scenario, scheduling)
        self._services = {name: None for name, story in self._stories.items() if story.arrival.service}
        self._left = len(self._stories) - len(self._services)
        self._rounds = Rounds()
        self._held = self._arrived = self._ended = 0

    def play(self, on_progress: Callable[[Tick], None] | None) -> bool:
        """Go on until nothing happens any more; false if it was stopped before."""
        self._begin()
        while len(self._agenda) or self._services:
            if self._cancel is not None and self._cancel.is_set():
                return False
            if not len(self._agenda):
                self._dismiss()
                continue
            at, kind, job = self._agenda.next()
            if kind == "round":
                self.now = at
                if self._scheduler.wants_round:
                    try:
                        self._round()
                    except Stopped:
                        return False
                    if on_progress is not None:
                        on_progress(self._tick())
            elif self._is_due(kind, job, at):
                self.now = at
                self._happen(kind, job)
        stranded = [name for name, story in self._stories.items() if story.end_ms is None]
        self._journal.write(t=self.now, e="over", stranded=stranded)
        return True

    def _begin(self) -> None:
        """Say what is played, and put the events into the agenda that are known from the first."""
        scenario = self.scenario
        self._journal.write(
            e="scenario",
            version=__version__,
            scenario=scenario.name,
            digest=scenario.digest,
            policy=self.scheduling.digest,
            seed=self._limits.seed,
        )
        begin = {held.job for held in scenario.running}
        for name, story in self._stories.items():
            if name not in begin:
                self._agenda.arrival(name, story.job.arrival_ms)
            if story.arrival.leaves_ms is not None:
                self._agenda.leave(name, story.arrival.leaves_ms)
        if scenario.running:
            for held in scenario.running:
                self._stories[held.job].came = True
            self._arrived = len(begin)
            begun = Decision(start=tuple(_placement(held) for held in scenario.running))
            self._places.apply(self._places.requested(begun), self.now)

    def _is_due(self, kind: Kind, job: str, at: int) -> bool:
        """Whether an event still holds; others were superseded."""
        story = self._stories[job]
        if kind == "end":
            return story.ends_at == at
        if kind == "failure":
            return story.fails_at == at
        return kind == "arrival" or story.end_ms is None

    def _happen(self, kind: Kind, job: str) -> None:
        if kind == "arrival":
            self._arrive(self._stories[job])
        elif kind == "end":
            self._end(self._stories[job])
        elif kind == "failure":
            self._fail(self._stories[job])
        else:
            self._dismissed(self._stories[job])

    def _arrive(self, story: JobState) -> None:
        self._journal.write(t=self.now, e="arrival", job=story.job.id)
        story.came = True
        self._arrived += 1
        self._scheduler.arrive(story.job)
        self._agenda.round_after("arrival", self.now)

    def _end(self, story: JobState, word: str = "end") -> None:
        self._journal.write(t=self.now, e=word, job=story.job.id)
        story.end_ms = self.now
        self._ended += 1
        self._scheduler.end(self._places.end(story, self.now), self.now)
        self._agenda.round_after("end", self.now)
        if not story.arrival.service:
            self._left -= 1
            if not self._left:
                self._dismiss()

    def _fail(self, story: JobState) -> None:
        failed = self._places.fail(story, self.now)
        if failed is not None:
            placement, left = failed
            self._journal.write(t=self.now, e="failure", job=story.job.id, left_mib=left)
            self._scheduler.end(placement, self.now)
            self._scheduler.arrive(story.job)
            self._agenda.round_after("end", self.now)

    def _dismiss(self) -> None:
        """Let the services leave that have no time for it: nothing else will happen."""
        for job in list(self._services):
            story = self._stories[job]
            if story.came and story.arrival.leaves_ms is None:
                self._dismissed(story)

    def _dismissed(self, story: JobState) -> None:
        """Let a service leave."""
        del self._services[story.job.id]
        if story.run is not None:
            self._end(story, "leave")
            return
        self._journal.write(t=self.now, e="leave", job=story.job.id)
        story.end_ms = self.now
        self._ended += 1
        self._scheduler.withdraw(story.job.id)

    def _round(self) -> None:
        self._held += 1
        told = self._journal.decision(self._held)
        waiting = self._scheduler.num_waiting
        looks_ahead = self._scheduler.looks_ahead and not self._journal.replaying
        scene = Scene(
            now_ms=self.now,
            ends=self._places.expected_ends() if looks_ahead else {},
            slowdown=self._places.slowdown,
            again=lambda job: self._places.again(job, self.now),
        )
        if told is not None:
            decision = self._places.requested(told_decision(told))
            self._scheduler.repeat(scene, decision)
        elif self._journal.replaying:
            decision = Decision()  # a round in which nothing changed has no line
            self._scheduler.repeat(scene, decision)
        else:
            wall, cpu = time.perf_counter(), time.process_time()
            decision = self._scheduler.decide(scene, self._limits, self._cancel)
            self._rounds.wall_s.append(time.perf_counter() - wall)
            self._rounds.cpu_s.append(time.process_time() - cpu)
        if decision:
            self._journal.write(
                t=self.now, e="round", n=self._held, waiting=waiting, **self._places.granted(decision).line()
            )
            self._places.apply(decision, self.now)
            self._journal.flush()
        wake = self._scheduler.wake_ms(self.now)
        if wake is not None and len(self._agenda):  # else nothing will be different then
            self._agenda.round_at(wake)

    def _tick(self) -> Tick:
        return Tick(
            now_ms=self.now,
            arrived=self._arrived,
            ended=self._ended,
            running=len(self._places.running),
            waiting=self._scheduler.num_waiting,
            jobs=len(self._stories),
            rounds=self._held,
        )

    def history(self, *, finished: bool) -> History:
        """Return what came of it."""
        jobs = tuple(story.history(self.now) for story in self._stories.values())
        rounds = Rounds(self._held, self._scheduler.cut, self._rounds.wall_s, self._rounds.cpu_s)
        return History(self.scenario, self.scheduling, self._limits.seed, self.now, finished, jobs, rounds)


def _placement(held: Running) -> Placement:
    return Placement(job=held.job, option=held.option, assignments=held.assignments)
