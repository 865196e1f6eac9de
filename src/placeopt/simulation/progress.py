"""How a running job gets on, and when it will have ended if nothing changes any more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from placeopt.simulation.performance_model import HeldResources, PerformanceModel

NANO = 10**6
"""Work is counted in nanoseconds of undisturbed run time, rounded down at changes of pace: no job ends early."""


@dataclass
class RunningJob:
    """A job that runs."""

    held: HeldResources
    start_ms: int
    actual_ms: int
    """Alone and well placed."""
    end_ms: int
    """As things are."""
    since_ms: int
    """Since when it gets on at this pace; in the future while it restarts."""
    done_ns: int = 0
    slowdown: int = 1000
    """Thousandths of the time it would take alone and well placed, as things are since ``since_ms``."""
    host_excess: int = 0
    """What of it is for want of CPU cores and memory bandwidth: its GPUs wait meanwhile."""
    waited_ns: int = 0
    """How long its GPUs waited for the host, up to ``since_ms``."""

    def waited_by(self, now_ms: int) -> int:
        """Return how long its GPUs have waited for the host by now, in nanoseconds."""
        return self.waited_ns + max(0, now_ms - self.since_ms) * NANO * self.host_excess // self.slowdown

    def done_by(self, now_ms: int) -> int:
        """Return the work done by now, in nanoseconds of undisturbed run time."""
        return self.done_ns + max(0, now_ms - self.since_ms) * NANO * 1000 // self.slowdown

    def foreseen_end(self) -> int:
        """Return when it ends if nothing changes any more."""
        left_ns = max(0, self.actual_ms * NANO - self.done_ns)
        return self.since_ms - (-left_ns * self.slowdown // (NANO * 1000))


class ProgressRule(Protocol):
    """When jobs end."""

    def refresh(self, run: RunningJob, now_ms: int) -> None:
        """Look at place and neighbours anew and set ``end_ms``."""


class ByRate:
    """
    A job goes on at the pace that its place, its neighbours, its shares and its host allow at the moment.

    Their excesses add up. Of a job's time its GPUs wait the part that the host's excess is of all.
    """

    def __init__(self, ground: PerformanceModel, interference: str) -> None:
        self._ground, self._interference = ground, interference

    def refresh(self, run: RunningJob, now_ms: int) -> None:
        """See ``ProgressRule``."""
        host = self._ground.host_excess(run.held)
        excess = self._ground.excess(run.held, self._interference) + self._ground.share_excess(run.held)
        slowdown = 1000 + run.held.apart_thousandths + excess + host
        if slowdown == run.slowdown and host == run.host_excess:
            return
        run.done_ns, run.waited_ns = run.done_by(now_ms), run.waited_by(now_ms)
        run.since_ms, run.slowdown, run.host_excess = max(run.since_ms, now_ms), slowdown, host
        run.end_ms = run.foreseen_end()


class LongestObserved:
    """
    A job takes the longest that it ever looked like: its time at its place, or that beside its worst neighbour.

    The rule of the simulator of SC'17's artifact. Nothing is prorated: one moment beside a bad neighbour costs the
    whole of it.
    """

    def __init__(self, ground: PerformanceModel) -> None:
        self._ground = ground

    def refresh(self, run: RunningJob, now_ms: int) -> None:
        """See ``ProgressRule``."""
        del now_ms
        ground, held = self._ground, run.held
        excess = max(held.apart_thousandths, ground.excess(held, "worst"), ground.share_excess(held))
        run.slowdown = max(run.slowdown, 1000 + excess)
        run.end_ms = run.start_ms - (-run.actual_ms * run.slowdown // 1000)
