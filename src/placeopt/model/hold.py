"""Room that is held without a job: reservations, nominations, placeholders, maintenance."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field, model_validator

from placeopt.model.base import Amounts, GpuIndex, Id, Mib, Millicores, Milliseconds, Record, Resources
from placeopt.model.job import MAX_PRIORITY, Job


class Hold(Record):
    """
    Room on a node that is kept free, whether or not it is free now.

    Jobs that run there stay; those that start, or move there, leave the room free. It does not count against the jobs
    that it is held for, nor against jobs above its priority: they take of it first. A hold that has not begun counts
    against the jobs that may still run then: those that state no ``run_time_ms``, or one that is longer.
    """

    id: Id
    """Unique name of the hold."""
    node: Id
    """Node on which room is held; of a node that the cluster does not list nothing is."""
    gpus: tuple[GpuIndex, ...] = ()
    """Indices of the GPUs that are held, each as a whole."""
    cpu_millicores: Millicores = 0
    """CPU held, in thousandths of a core."""
    memory_mib: Mib = 0
    """Host memory held."""
    resources: Resources = Field(default_factory=Amounts)
    """Named resources held."""
    from_ms: Milliseconds = 0
    """Time from which it is held. All jobs count as beginning now, also those that run."""
    until_ms: Milliseconds | None = None
    """Time from which nothing is held any more; null: no end is known."""
    priority: Annotated[int, Field(ge=-MAX_PRIORITY, le=MAX_PRIORITY)] | None = None
    """It counts against jobs of at most this priority; null: against all."""
    jobs: tuple[Id, ...] = Field(default=(), alias="for")
    """Jobs that the room is held for."""

    @model_validator(mode="after")
    def _ends_after_it_begins(self) -> Self:
        if self.until_ms is not None and 0 < self.from_ms >= self.until_ms:
            raise ValueError(f"until_ms: {self.until_ms}, expected after from_ms, {self.from_ms}")
        return self

    @property
    def kind(self) -> object:
        """What is equal for holds that count against the same jobs."""
        return self.jobs, self.priority, self.from_ms

    def counts_against_all(self, now_ms: int) -> bool:
        """Return whether no job may take of it."""
        return self.priority is None and not self.jobs and self.from_ms <= now_ms

    def counts_against(self, job: Job, now_ms: int) -> bool:
        """Return whether a job that begins now has to leave the room free."""
        if job.id in self.jobs or not (self.priority is None or job.priority <= self.priority):
            return False
        times = [option.run_time_ms for option in job.options] if self.from_ms > now_ms else []
        return not times or any(time is None or now_ms + time > self.from_ms for time in times)


def hold_groups(holds: tuple[Hold, ...], now_ms: int) -> tuple[tuple[Hold, ...], ...]:
    """
    Return the groups of holds of one node that jobs leave free together.

    What the jobs that all of a group count against take, and the room of the group, are at most what the node has. Each
    hold is a group. Now, and whenever one begins, so are those holds together that count against all, and for each
    priority those that count against it.
    """
    groups: dict[tuple[Hold, ...], None] = {(hold,): None for hold in holds}
    for moment in {now_ms, *(hold.from_ms for hold in holds if hold.from_ms > now_ms)}:
        there = [h for h in holds if h.from_ms <= moment and (h.until_ms is None or h.until_ms > moment)]
        together = [tuple(hold for hold in there if hold.priority is None and not hold.jobs)]
        for priority in {hold.priority for hold in there}:
            level = [h for h in there if h.priority is None or (priority is not None and h.priority >= priority)]
            together.append(tuple(level))
        groups |= dict.fromkeys(filter(None, together))
    return tuple(groups)
