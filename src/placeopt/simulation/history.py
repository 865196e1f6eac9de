"""What came of a simulation, job by job."""

from __future__ import annotations

from dataclasses import dataclass, field

from placeopt.model import Placement
from placeopt.model.scenario import Scenario
from placeopt.model.scheduling import Scheduling


@dataclass(frozen=True)
class Span:
    """
    A job in one placement, from ``start_ms`` to ``end_ms``; None: it is there still.

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
    One job. None: it has not come so far.

    ``alone_ms`` is what it takes alone and well placed in the option that it got first, else in its first one; of an
    elastic option with as many workers as it asks for.
    """

    job: str
    user: str | None
    arrival_ms: int
    gpu_milli: int
    """Requested where it was placed last, or in the first option."""
    alone_ms: int
    start_ms: int | None = None
    end_ms: int | None = None
    due_ms: int | None = None
    """Deadline, or else expected completion time."""
    placement: Placement | None = None
    """The last one."""
    spans: tuple[Span, ...] = ()
    """Where it was and when, in order; one only where nothing was changed."""
    service: bool = False
    """It has no end of its own."""
    stops: int = 0
    """How often it was stopped, to wait again or to restart elsewhere at once."""
    moves: int = 0
    """How often it was moved by a plan."""
    resizes: int = 0
    failures: int = 0
    """How often it ran out of GPU memory."""

    @property
    def host_wait_ms(self) -> int:
        """How long its GPUs waited for CPU cores and memory bandwidth while it ran; 0 while it is where it is."""
        return sum(span.host_wait_ms for span in self.spans)

    @property
    def placed_ms(self) -> int:
        """
        How long it was in its places, restarts and work that was lost included; nothing of where it is now.

        From start to end that is all the time but what it waited again after a stop or a failure.
        """
        return sum(span.end_ms - span.start_ms for span in self.spans if span.end_ms is not None)

    @property
    def completion_ms(self) -> int | None:
        """From its arrival to its end; None: it has not ended."""
        return None if self.end_ms is None else self.end_ms - self.arrival_ms

    @property
    def slowdown(self) -> float:
        """Time in its places so far / run time alone and well placed; of a service, which has no run time, nothing."""
        return self.placed_ms / max(1, self.alone_ms)

    @property
    def slowdown_with_wait(self) -> float | None:
        """From its arrival to its end / run time alone and well placed; None: it has not ended."""
        return None if self.completion_ms is None else self.completion_ms / max(1, self.alone_ms)


@dataclass(frozen=True)
class Rounds:
    """The rounds that were held, and how long the decisions of those took that were not read from a log, in seconds."""

    held: int = 0
    cut: int = 0
    """Of those that were decided: cut short by the time limit, so that another run may decide otherwise."""
    wall_s: list[float] = field(default_factory=list)
    cpu_s: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class History:
    """A simulation, over or stopped."""

    scenario: Scenario
    scheduling: Scheduling
    seed: int
    now_ms: int
    finished: bool
    """Nothing will happen any more. Jobs that have not ended then never will."""
    jobs: tuple[JobHistory, ...]
    """In the order of the scenario."""
    rounds: Rounds

    @property
    def stranded(self) -> tuple[str, ...]:
        """Return the jobs that wait for ever, in the queue or on their GPUs for more workers."""
        return tuple(job.job for job in self.jobs if job.end_ms is None) if self.finished else ()
