"""How a running job gets on, and when it will have ended if nothing changes any more."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from placeopt.simulate.ground import Ground, Held

NANO = 10**6
"""Work is counted in nanoseconds of undisturbed run time, rounded down at changes of pace: no job ends early."""


@dataclass
class Run:
    """A job that runs."""

    held: Held
    start_ms: int
    actual_ms: int
    """Alone and well placed."""
    end_ms: int
    """As things are."""
    since_ms: int
    done_ns: int = 0
    slowdown: int = 1000
    """Thousandths of the time it would take alone and well placed, as things are since ``since_ms``."""
    host_excess: int = 0
    """What of it is for want of CPU cores and memory bandwidth: its GPUs wait meanwhile."""
    waited_ns: int = 0
    """How long its GPUs waited for the host, up to ``since_ms``."""

    def waited_ms(self, now_ms: int) -> int:
        """Return how long its GPUs have waited for the host, rounded down."""
        return (self.waited_ns + (now_ms - self.since_ms) * NANO * self.host_excess // self.slowdown) // NANO


class Rule(Protocol):
    """When jobs end."""

    def refresh(self, run: Run, now_ms: int) -> None:
        """Look at place and neighbours anew and set ``end_ms``."""


class ByRate:
    """
    A job goes on at the pace that its place, its neighbours and its host allow at the moment.

    Their excesses add up. Of a job's time its GPUs wait the part that the host's excess is of all.
    """

    def __init__(self, ground: Ground, interference: str) -> None:
        self._ground, self._interference = ground, interference

    def refresh(self, run: Run, now_ms: int) -> None:
        """See ``Rule``."""
        host = self._ground.host_excess(run.held)
        slowdown = 1000 + run.held.apart_thousandths + self._ground.excess(run.held, self._interference) + host
        if slowdown == run.slowdown and host == run.host_excess:
            return
        span_ns = (now_ms - run.since_ms) * NANO
        run.done_ns += span_ns * 1000 // run.slowdown
        run.waited_ns += span_ns * run.host_excess // run.slowdown
        run.since_ms, run.slowdown, run.host_excess = now_ms, slowdown, host
        left_ns = max(0, run.actual_ms * NANO - run.done_ns)
        run.end_ms = now_ms - (-left_ns * slowdown // (NANO * 1000))


class LongestSeen:
    """
    A job takes the longest that it ever looked like: its time at its place, or that beside its worst neighbour.

    The rule of the simulator of SC'17's artifact. Nothing is prorated: one moment beside a bad neighbour costs the
    whole of it.
    """

    def __init__(self, ground: Ground) -> None:
        self._ground = ground

    def refresh(self, run: Run, now_ms: int) -> None:
        """See ``Rule``."""
        del now_ms
        excess = max(run.held.apart_thousandths, self._ground.excess(run.held, "worst"))
        run.slowdown = max(run.slowdown, 1000 + excess)
        run.end_ms = run.start_ms - (-run.actual_ms * run.slowdown // 1000)
