"""How long a job waits before room is held for it."""

from __future__ import annotations

from placeopt.model import Job
from placeopt.scheduling.policy import Scheduling


class MeanRunTime:
    """The mean predicted run time of the jobs that have come, each as it came last."""

    def __init__(self) -> None:
        self._of_job: dict[str, int] = {}
        self._sum_ms = 0

    def note(self, job: Job) -> None:
        """Take in a job, by its first option that states a run time."""
        run_time_ms = next((option.run_time_ms for option in job.options if option.run_time_ms), None)
        if run_time_ms is not None:
            self._sum_ms += run_time_ms - self._of_job.get(job.id, 0)
            self._of_job[job.id] = run_time_ms

    @property
    def mean_ms(self) -> int | None:
        """The mean; None where no job states a run time."""
        return self._sum_ms // len(self._of_job) if self._of_job else None


def hold_after_ms(scheduling: Scheduling, run_times: MeanRunTime) -> int | None:
    """Return the waiting time after which a policy holds room for a job; None: it never does."""
    runs, mean_ms = scheduling.hold_after_runs, run_times.mean_ms
    by_runs = None if runs is None or mean_ms is None else runs * mean_ms
    return min((ms for ms in (scheduling.hold_after_ms, by_runs) if ms is not None), default=None)
