"""The result of a simulation, job by job."""

from __future__ import annotations

from dataclasses import dataclass, field

from placeopt.model import Placement
from placeopt.model.scenario import Scenario
from placeopt.model.scheduling import Scheduling


@dataclass(frozen=True)
class Span:
    """
    A job in one placement, from ``start_ms`` to ``end_ms``; None: it still runs there.

    Shares are the requests; what was granted above changes within a span, with every start and end on the GPU.
    """

    placement: Placement
    start_ms: int
    end_ms: int | None
    host_wait_ms: int = 0
    """How long its GPUs waited there for CPU cores and memory bandwidth, rounded down."""


@dataclass(frozen=True)
class JobHistory:
    """
    One job; None: the event has not happened.

    ``alone_ms`` is its run time alone and well placed in the option that it got first, else in its first one; with an
    elastic option, with as many workers as it asks for.
    """

    job: str
    user: str | None
    arrival_ms: int
    gpu_milli: int
    """Requested in its last placement, or in the first option."""
    alone_ms: int
    start_ms: int | None = None
    end_ms: int | None = None
    due_ms: int | None = None
    """Deadline, or else expected completion time."""
    placement: Placement | None = None
    """The last one."""
    spans: tuple[Span, ...] = ()
    """Its placements in order; a single one unless it was changed."""
    service: bool = False
    """It has no end of its own."""
    stops: int = 0
    """Number of stops, to wait again or to restart elsewhere at once."""
    moves: int = 0
    """Number of moves by a plan."""
    resizes: int = 0
    failures: int = 0
    """Number of times that it ran out of GPU memory."""

    @property
    def host_wait_ms(self) -> int:
        """How long its GPUs waited for CPU cores and memory bandwidth, in all its placements."""
        return sum(span.host_wait_ms for span in self.spans)

    @property
    def placed_ms(self) -> int:
        """
        Time in placements that it has left, restarts and lost work included.

        From start to end, that is all the time except waits after a stop or a failure.
        """
        return sum(span.end_ms - span.start_ms for span in self.spans if span.end_ms is not None)

    @property
    def completion_ms(self) -> int | None:
        """Time from its arrival to its end; None: it has not ended."""
        return None if self.end_ms is None else self.end_ms - self.arrival_ms

    @property
    def slowdown(self) -> float:
        """Time in its placements so far / run time alone and well placed; services have no run time."""
        return self.placed_ms / max(1, self.alone_ms)

    @property
    def slowdown_with_wait(self) -> float | None:
        """Time from its arrival to its end / run time alone and well placed; None: it has not ended."""
        return None if self.completion_ms is None else self.completion_ms / max(1, self.alone_ms)


@dataclass(frozen=True)
class Rounds:
    """Number of rounds, and the time in seconds of decisions that were not read from a log."""

    held: int = 0
    cut: int = 0
    """Number of decisions that the time limit cut short, so that another run may decide otherwise."""
    wall_s: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class History:
    """A simulation, finished or cancelled."""

    scenario: Scenario
    scheduling: Scheduling
    seed: int
    now_ms: int
    finished: bool
    """No event is left: jobs that have not ended never will."""
    jobs: tuple[JobHistory, ...]
    """In the order of the scenario."""
    rounds: Rounds

    @property
    def stranded(self) -> tuple[str, ...]:
        """The jobs that wait for ever, in the queue or on their GPUs for more workers."""
        return tuple(job.job for job in self.jobs if job.end_ms is None) if self.finished else ()
