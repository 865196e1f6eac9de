"""Room that is held for the job that has waited longest, once it has waited as long as a policy says."""

from __future__ import annotations

from collections.abc import Iterable

from placeopt.model import Instance, Job
from placeopt.scheduling.policy import Scheduling
from placeopt.solving.held_room import hold_room


class LongWaits:
    """The jobs that have come under a policy, of which those wait long that wait so many of their mean run times."""

    def __init__(self, scheduling: Scheduling) -> None:
        self._scheduling = scheduling
        self._run_time_ms: dict[str, int] = {}  # of each job as it came last
        self._sum_ms = 0

    def note(self, job: Job) -> None:
        """Take in a job with its predicted run time, that of the first option which states one."""
        run_time_ms = next((option.run_time_ms for option in job.options if option.run_time_ms), None)
        if run_time_ms is not None:
            self._sum_ms += run_time_ms - self._run_time_ms.get(job.id, 0)
            self._run_time_ms[job.id] = run_time_ms

    @property
    def after_ms(self) -> int | None:
        """Waiting time after which room is held for a job; None: it is never held."""
        runs, number = self._scheduling.hold_after_runs, len(self._run_time_ms)
        by_runs = None if runs is None or not number else runs * (self._sum_ms // number)
        return min((ms for ms in (self._scheduling.hold_after_ms, by_runs) if ms is not None), default=None)

    def any_of(self, jobs: Iterable[Job], now_ms: int) -> bool:
        """Return whether any of the jobs has waited so long."""
        after_ms = self.after_ms
        return after_ms is not None and any(now_ms - job.arrival_ms >= after_ms for job in jobs)

    def with_room(self, now: Instance, *, deterministic: bool) -> Instance:
        """Return a round with room held for the job that has waited longest; the round itself where it never is."""
        after_ms = self.after_ms
        return now if after_ms is None else hold_room(now, after_ms=after_ms, deterministic=deterministic)
