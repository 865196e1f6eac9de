"""Progress of a running job, and when it ends if nothing changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from placeopt.simulation.performance_model import HeldResources, PerformanceModel

NANO = 10**6
"""Unit of work: nanoseconds of undisturbed run time, rounded down at changes of pace, so that no job ends early."""


@dataclass
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
