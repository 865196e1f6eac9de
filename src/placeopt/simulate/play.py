"""The simulation itself: what happens next, who starts, when it ends."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from placeopt import __version__
from placeopt.engine import Engine
from placeopt.model import Placement, Running
from placeopt.model.scenario import Arrival, Scenario
from placeopt.model.scheduling import Scheduling
from placeopt.simulate.agenda import Agenda
from placeopt.simulate.ground import Ground
from placeopt.simulate.history import History, JobHistory, Rounds
from placeopt.simulate.job_by_job import JobByJob
from placeopt.simulate.journal import Journal, told_placements
from placeopt.simulate.progress import ByRate, LongestSeen, Rule, Run
from placeopt.simulate.scheduler import Limits, Scheduler, Stopped, granted, least_milli
from placeopt.simulate.whole_rounds import WholeRounds


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
        If the policy cannot decide on the scenario's jobs, or the log to go on with is of something else.
    """
    with Journal(log, resume=resume) as journal, Engine(scheduling.policy) as engine:
        game = _Game(scenario, scheduling, engine, journal, Limits(seed, time_limit_s, deterministic), cancel)
        finished = game.play(on_progress)
        return game.history(finished=finished)


class _Game:
    """The state of a simulation."""

    def __init__(
        self,
        scenario: Scenario,
        scheduling: Scheduling,
        engine: Engine,
        journal: Journal,
        limits: Limits,
        cancel: threading.Event | None,
    ) -> None:
        self.scenario, self.scheduling = scenario, scheduling
        self.now = 0
        self._journal, self._limits, self._cancel = journal, limits, cancel
        self._arrivals = {arrival.job.id: arrival for arrival in scenario.arrivals}
        self._ground = Ground(scenario, throttle=scheduling.bandwidth == "throttle")
        physics = scenario.physics
        self._rule: Rule = (
            LongestSeen(self._ground) if physics.rule == "sc17" else ByRate(self._ground, physics.interference)
        )
        self._agenda = Agenda(physics.step_ms, scheduling.interval_ms)
        decider = WholeRounds if scheduling.rounds == "whole" else JobByJob
        self._scheduler: Scheduler = decider(engine, scenario, scheduling)
        self._running: dict[str, Run] = {}
        self._placed: dict[str, Placement] = {}
        self._started: dict[str, int] = {}
        self._ends_at: dict[str, int] = {}
        self._ended: dict[str, int] = {}
        self._actual: dict[str, int] = {}
        self._waited: dict[str, int] = {}
        self._rounds = Rounds()
        self._held = 0
        self._arrived = len(scenario.running)
        journal.write(
            e="scenario",
            version=__version__,
            scenario=scenario.name,
            digest=scenario.digest,
            policy=scheduling.digest,
            seed=limits.seed,
        )
        begin = {held.job for held in scenario.running}
        for arrival in scenario.arrivals:
            if arrival.job.id not in begin:
                self._agenda.arrival(arrival.job.id, arrival.job.arrival_ms)
        if scenario.running:
            self._start([_placement(held) for held in scenario.running])

    def play(self, on_progress: Callable[[Tick], None] | None) -> bool:
        """Go on until nothing happens any more; false if it was stopped before."""
        while len(self._agenda):
            if self._cancel is not None and self._cancel.is_set():
                return False
            at, kind, job = self._agenda.next()
            if kind == "end" and self._ends_at.get(job) != at:
                continue  # superseded
            self.now = at
            if kind == "arrival":
                self._arrive(self._arrivals[job])
            elif kind == "end":
                self._end(job)
            elif self._scheduler.num_waiting:
                try:
                    self._round()
                except Stopped:
                    return False
                if on_progress is not None:
                    on_progress(self._tick())
        stranded = [job for job in self._arrivals if job not in self._started]
        self._journal.write(t=self.now, e="over", stranded=stranded)
        return True

    def _arrive(self, arrival: Arrival) -> None:
        self._journal.write(t=self.now, e="arrival", job=arrival.job.id)
        self._arrived += 1
        self._scheduler.arrive(arrival.job)
        self._agenda.round_after("arrival", self.now)

    def _end(self, job: str) -> None:
        run = self._running.pop(job)
        self._journal.write(t=self.now, e="end", job=job)
        del self._ends_at[job]
        self._ended[job] = self.now
        self._waited[job] = run.waited_ms(self.now)
        self._ground.end(run.held)
        self._scheduler.end(self._placed[job])
        self._refresh(self._ground.beside(run.held))
        self._agenda.round_after("end", self.now)

    def _round(self) -> None:
        self._held += 1
        told = self._journal.decision(self._held)
        waiting = self._scheduler.num_waiting
        if told is not None:
            placements = told_placements(told)
            self._scheduler.repeat(self.now, placements)
        elif self._journal.replaying:
            placements = []  # a round in which nobody started has no line
            self._scheduler.repeat(self.now, placements)
        else:
            wall, cpu = time.perf_counter(), time.process_time()
            placements = list(self._scheduler.decide(self.now, self._expected_ends(), self._limits, self._cancel))
            self._rounds.wall_s.append(time.perf_counter() - wall)
            self._rounds.cpu_s.append(time.process_time() - cpu)
        if placements:
            start = [placement.model_dump(mode="json", exclude_defaults=True) for placement in placements]
            self._journal.write(t=self.now, e="round", n=self._held, waiting=waiting, start=start)
            self._start(placements)
            self._journal.flush()

    def _start(self, placements: list[Placement]) -> None:
        beside: dict[str, None] = {}
        for placement in placements:
            job = placement.job
            held = self._ground.held(placement)
            actual = self._arrivals[job].actual_ms(placement.option)
            self._actual[job], self._placed[job], self._started[job] = actual, placement, self.now
            self._running[job] = Run(held, self.now, actual, self.now + actual, self.now)
            self._ground.start(held)
            beside |= self._ground.beside(held)
            beside[job] = None  # a job without GPUs stands beside nobody
        self._refresh(beside)

    def _refresh(self, jobs: dict[str, None]) -> None:
        """Ask for jobs whose neighbours changed when they end now."""
        for job in jobs:
            run = self._running[job]
            self._rule.refresh(run, self.now)
            noticed = self._agenda.noticed(run.start_ms, run.end_ms)
            if self._ends_at.get(job) != noticed:
                self._ends_at[job] = noticed
                self._agenda.end(job, noticed)

    def _expected_ends(self) -> dict[str, int]:
        """Return when running jobs would end if their predictions were true: what look-ahead goes by."""
        if not self._scheduler.looks_ahead:
            return {}
        out: dict[str, int] = {}
        for job, run in self._running.items():
            option = next(o for o in self._arrivals[job].job.options if o.id == self._placed[job].option)
            if option.run_time_ms is not None:
                out[job] = run.start_ms + (run.end_ms - run.start_ms) * option.run_time_ms // run.actual_ms
        return out

    def _tick(self) -> Tick:
        return Tick(
            now_ms=self.now,
            arrived=self._arrived,
            ended=len(self._ended),
            running=len(self._running),
            waiting=self._scheduler.num_waiting,
            jobs=len(self._arrivals),
            rounds=self._held,
        )

    def history(self, *, finished: bool) -> History:
        """Return what came of it."""
        jobs = []
        for name, arrival in self._arrivals.items():
            job, placement = arrival.job, self._placed.get(name)
            first = job.options[0]
            jobs.append(
                JobHistory(
                    job=name,
                    user=job.user,
                    arrival_ms=job.arrival_ms,
                    gpu_milli=least_milli(first) if placement is None else granted(placement),
                    alone_ms=self._actual.get(name) or arrival.actual_ms(first.id),
                    start_ms=self._started.get(name),
                    end_ms=self._ended.get(name),
                    due_ms=job.expected_completion_ms if job.deadline_ms is None else job.deadline_ms,
                    placement=placement,
                    host_wait_ms=self._running[name].waited_ms(self.now)
                    if name in self._running
                    else self._waited.get(name, 0),
                )
            )
        rounds = Rounds(self._held, self._scheduler.cut, self._rounds.wall_s, self._rounds.cpu_s)
        return History(self.scenario, self.scheduling, self._limits.seed, self.now, finished, tuple(jobs), rounds)


def _placement(held: Running) -> Placement:
    return Placement(job=held.job, option=held.option, assignments=held.assignments)
