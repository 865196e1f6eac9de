"""Room that is held without a job: reservations, nominations, placeholders, maintenance."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from placeopt.model.base import Amounts, GpuIndex, Id, Mib, Millicores, Milliseconds, Record, Resources
from placeopt.model.job import MAX_PRIORITY, Job


class Hold(Record):
    """
    Room on a node that is kept free, whether or not it is free now.

    Jobs that run there stay; those that start, or move there, leave the room free. It does not count against the jobs
    that it is held for, nor against jobs above its priority: they take of it first.
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
    until_ms: Milliseconds | None = None
    """Time from which nothing is held any more; null: no end is known."""
    priority: Annotated[int, Field(ge=-MAX_PRIORITY, le=MAX_PRIORITY)] | None = None
    """It counts against jobs of at most this priority; null: against all."""
    jobs: tuple[Id, ...] = Field(default=(), alias="for")
    """Jobs that the room is held for."""

    @property
    def counts_against_all(self) -> bool:
        """Whether no job may take of it."""
        return self.priority is None and not self.jobs

    def counts_against(self, job: Job) -> bool:
        """Return whether a job has to leave the room free."""
        return job.id not in self.jobs and (self.priority is None or job.priority <= self.priority)


def hold_groups(holds: tuple[Hold, ...]) -> tuple[tuple[Hold, ...], ...]:
    """
    Return the groups of holds of one node that jobs leave free together.

    What the jobs that all of a group count against take, and the room of the group, are at most what the node has. Each
    hold is a group, those that count against all are one, and so are, for each priority, those that count against it.
    """
    groups: dict[tuple[Hold, ...], None] = {(hold,): None for hold in holds}
    if everybody := tuple(hold for hold in holds if hold.counts_against_all):
        groups[everybody] = None
    for priority in {hold.priority for hold in holds}:
        level = [h for h in holds if h.priority is None or (priority is not None and h.priority >= priority)]
        groups[tuple(level)] = None
    return tuple(groups)
