"""One job in a simulation: where it was, how far it is, when it ends if nothing changes, and what was changed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from placeopt.model import Job, Placement
from placeopt.scheduling.placement_amounts import gpu_milli_of, requested_amounts, workers_of
from placeopt.simulation.held_resources import HeldResources
from placeopt.simulation.history import JobHistory, Span
from placeopt.simulation.performance_model import PerformanceModel
from placeopt.simulation.records.scenario import Arrival, Physics

NANO = 10**6
"""Unit of work: nanoseconds of undisturbed run time, rounded down at changes of pace, so that no job ends early."""


NEVER_MS = 10**16
"""Later than any event: when a job that waits on its GPUs for workers goes on."""


@dataclass(slots=True)
class RunningJob:
    """A job that runs."""

    held: HeldResources
    start_ms: int
    actual_ms: int
    """Alone and well placed."""
    end_ms: int
    """At its present pace."""
    since_ms: int
    """Since when it progresses at this pace; in the future while it restarts."""
    done_ns: int = 0
    slowdown: int = 1000
    """Thousandths of the time it would take alone and well placed, since ``since_ms``."""
    host_excess: int = 0
    """The part of it by too few CPU cores and too little memory bandwidth: its GPUs wait meanwhile."""
    waited_ns: int = 0
    """How long its GPUs waited for the host, up to ``since_ms``."""

    def waited_by(self, now_ms: int) -> int:
        """Return how long its GPUs have waited for the host by now, in nanoseconds."""
        return self.waited_ns + max(0, now_ms - self.since_ms) * NANO * self.host_excess // self.slowdown

    def done_by(self, now_ms: int) -> int:
        """Return the work done by now, in nanoseconds of undisturbed run time."""
        return self.done_ns + max(0, now_ms - self.since_ms) * NANO * 1000 // self.slowdown

    def foreseen_end(self) -> int:
        """Return when it ends if nothing changes."""
        left_ns = max(0, self.actual_ms * NANO - self.done_ns)
        return self.since_ms - (-left_ns * self.slowdown // (NANO * 1000))


class ProgressRule(Protocol):
    """A rule by which jobs progress."""

    def refresh(self, run: RunningJob, now_ms: int) -> None:
        """Set ``end_ms`` by the present placement and neighbours."""


class ByRate:
    """
    A job progresses at the pace that its placement, neighbours, shares and host allow at the moment.

    The excesses add up. The GPUs of a job wait for the part of its time that is the host's excess.
    """

    def __init__(self, performance: PerformanceModel, interference: str) -> None:
        self._performance, self._interference = performance, interference

    def refresh(self, run: RunningJob, now_ms: int) -> None:
        """Count the work done so far, and set pace and ``end_ms`` by the present excesses."""
        host = self._performance.host_excess(run.held)
        excess = self._performance.excess(run.held, self._interference) + self._performance.share_excess(run.held)
        slowdown = 1000 + run.held.apart_thousandths + excess + host
        if slowdown == run.slowdown and host == run.host_excess:
            return
        run.done_ns, run.waited_ns = run.done_by(now_ms), run.waited_by(now_ms)
        run.since_ms, run.slowdown, run.host_excess = max(run.since_ms, now_ms), slowdown, host
        run.end_ms = run.foreseen_end()


class LongestObserved:
    """
    A job takes as long as its worst moment implies, by its placement or by its worst neighbour.

    The rule of the simulator of SC'17's artifact. Nothing is prorated: one moment beside a bad neighbour counts for
    the whole run.
    """

    def __init__(self, performance: PerformanceModel) -> None:
        self._performance = performance

    def refresh(self, run: RunningJob, now_ms: int) -> None:
        """Set ``end_ms`` by the largest excess so far."""
        del now_ms
        performance, held = self._performance, run.held
        excess = max(held.apart_thousandths, performance.excess(held, "worst"), performance.share_excess(held))
        run.slowdown = max(run.slowdown, 1000 + excess)
        run.end_ms = run.start_ms - (-run.actual_ms * run.slowdown // 1000)


@dataclass(slots=True)
class JobState:
    """A job of the scenario, during the simulation."""

    arrival: Arrival
    job: Job
    """As it is submitted; after a failure it requests more."""
    run: RunningJob | None = None
    """None: it does not run."""
    placement: Placement | None = None
    """The last one."""
    arrived: bool = False
    start_ms: int | None = None
    end_ms: int | None = None
    ends_at: int | None = None
    """When its end will be noticed at its present pace; None: not foreseeable."""
    fails_at: int | None = None
    alone_ms: int | None = None
    done_ns: int = 0
    """Work done and kept when it last left a placement, in nanoseconds of undisturbed run time..."""
    of_ms: int = 1
    """... of this run time."""
    restarts: bool = False
    """Whether it was stopped or is moved, so that its next start takes time."""
    spans: list[Span] = field(default_factory=list)
    stops: int = 0
    moves: int = 0
    resizes: int = 0
    failures: int = 0

    def begin(self, held: HeldResources, placement: Placement, now_ms: int, pause_ms: int, *, idle: bool) -> RunningJob:
        """Start the job in a placement; it progresses after a pause, or not at all while it is ``idle``."""
        elastic = self.job.option(placement.option).workers_min is not None
        workers = workers_of(placement) if elastic else None
        actual = NEVER_MS if self.arrival.service else self.arrival.actual_ms(placement.option, workers)
        self.run = run = RunningJob(
            held=held,
            start_ms=now_ms,
            actual_ms=actual,
            end_ms=NEVER_MS,
            since_ms=NEVER_MS if idle else now_ms + pause_ms,
            done_ns=self.done_ns * actual // self.of_ms,
        )
        run.end_ms = run.foreseen_end()
        self.placement, self.restarts = placement, self.restarts and idle
        if self.start_ms is None:
            self.start_ms = now_ms
            option = self.job.option(placement.option)
            if not self.arrival.service:
                self.alone_ms = self.arrival.alone_ms(option)
        return run

    def leave(self, now_ms: int) -> Placement:
        """Remove the job from its placement, with all the work done; return the placement."""
        run, placement = self.standing()
        self.done_ns, self.of_ms = run.done_by(now_ms), run.actual_ms
        self.spans.append(Span(placement, run.start_ms, now_ms, run.waited_by(now_ms) // NANO))
        self.run, self.ends_at, self.fails_at = None, None, None
        return placement

    def lose(self, physics: Physics) -> None:
        """Drop the work that is lost when the job is stopped or moved."""
        self.done_ns, self.restarts = kept_work(self.done_ns, physics), True

    def standing(self) -> tuple[RunningJob, Placement]:
        """Return run and placement of a job that runs."""
        if self.run is None or self.placement is None:
            raise ValueError(f"job {self.job.id!r} does not run")
        return self.run, self.placement

    def if_stopped(self, now_ms: int, physics: Physics) -> Job:
        """Return the job as it would wait if it were stopped now, with the run times of the work left."""
        run, _ = self.standing()
        done, whole = kept_work(run.done_by(now_ms), physics), run.actual_ms * NANO
        if not done:
            return self.job
        options = tuple(
            option
            if option.run_time_ms is None
            else option.model_copy(update={"run_time_ms": max(1, option.run_time_ms * (whole - done) // whole)})
            for option in self.job.options
        )
        return self.job.model_copy(update={"options": options})

    def history(self, now_ms: int) -> JobHistory:
        """Return what happened to the job by now."""
        job, first = self.arrival.job, self.arrival.job.options[0]
        gpu_milli = requested_amounts(first, first.workers)[0]
        last: tuple[Span, ...] = ()
        if self.placement is not None:
            gpu_milli = gpu_milli_of(self.placement)
        if self.run is not None and self.placement is not None:
            last = (Span(self.placement, self.run.start_ms, None, self.run.waited_by(now_ms) // NANO),)
        alone = self.alone_ms
        if alone is None:
            alone = 0 if self.arrival.service else self.arrival.alone_ms(first)
        return JobHistory(
            job=job.id,
            user=job.user,
            arrival_ms=job.arrival_ms,
            gpu_milli=gpu_milli,
            alone_ms=alone,
            start_ms=self.start_ms,
            end_ms=self.end_ms,
            due_ms=job.expected_completion_ms if job.deadline_ms is None else job.deadline_ms,
            placement=self.placement,
            spans=(*self.spans, *last),
            service=self.arrival.service,
            stops=self.stops,
            moves=self.moves,
            resizes=self.resizes,
            failures=self.failures,
        )


def kept_work(done_ns: int, physics: Physics) -> int:
    """Return how much of the work done is kept when a job is stopped or moved."""
    if not physics.keeps_work:
        return 0
    if physics.checkpoint_ms is None:
        return done_ns
    return done_ns - done_ns % (physics.checkpoint_ms * NANO)
