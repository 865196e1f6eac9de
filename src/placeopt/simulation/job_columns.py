"""The jobs of a simulation as columns, from which the figures of jobs are computed."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from placeopt.simulation.history import History

Times = NDArray[np.float64]
"""In ms, one for each job; NaN where the event has not happened."""
Flags = NDArray[np.bool_]
"""One for each job."""


@dataclass(frozen=True)
class JobColumns:
    """Jobs that end by themselves, in the order of the scenario."""

    user: NDArray[np.str_]
    """Names; empty where none is stated."""
    arrival: Times
    start: Times
    """Of the first placement."""
    end: Times
    due: Times
    """Deadline, or else expected completion time."""
    placed: Times
    """Time in placements that it has left, restarts and lost work included."""
    alone: Times
    """Run time alone and well placed, at least 1."""

    @classmethod
    def of(cls, history: History) -> JobColumns:
        """Return the columns of the jobs of a simulation that end by themselves."""
        jobs = [job for job in history.jobs if not job.service]
        times = [
            (job.arrival_ms, job.start_ms, job.end_ms, job.due_ms, job.placed_ms, max(1, job.alone_ms)) for job in jobs
        ]
        columns = np.array(times, dtype=np.float64).reshape(-1, 6).T
        return cls(np.array([job.user or "" for job in jobs], dtype=np.str_), *columns)

    def __len__(self) -> int:
        """Return the number of jobs."""
        return len(self.arrival)

    def rows(self, chosen: Flags) -> JobColumns:
        """Return the columns of some of the jobs."""
        return JobColumns(**{column.name: getattr(self, column.name)[chosen] for column in fields(self)})

    @property
    def ended(self) -> JobColumns:
        """The jobs that have ended."""
        return self.rows(np.isfinite(self.run))

    @property
    def wait(self) -> Times:
        """First start - arrival."""
        return self.start - self.arrival

    @property
    def completion(self) -> Times:
        """End - arrival."""
        return self.end - self.arrival

    @property
    def run(self) -> Times:
        """End - first start."""
        return self.end - self.start

    @property
    def slowdown(self) -> Times:
        """Time in its placements so far / run time alone and well placed."""
        return self.placed / self.alone

    @property
    def slowdown_with_wait(self) -> Times:
        """Time from its arrival to its end / run time alone and well placed."""
        return self.completion / self.alone

    @property
    def in_time(self) -> Flags:
        """Whether each job that is due ended by then."""
        return (self.end <= self.due)[np.isfinite(self.due)]

    def at_once(self, step_ms: int | None) -> Flags:
        """Return whether each job started without waiting, or within a time step."""
        return self.wait <= (step_ms or 0)
