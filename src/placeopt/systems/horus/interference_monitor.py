"""A later look at jobs that started on shared GPUs: whether they slow the earlier jobs too much (Horus: PAB)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated

from pydantic import Field

from placeopt.model import Placement
from placeopt.model.base import Milliseconds
from placeopt.scheduling.occupancy import Held, Occupancy
from placeopt.scheduling.placement_amounts import gpus_of
from placeopt.scheduling.rules import WATCHES, Rule
from placeopt.scheduling.watching import Monitor


class Watch(Rule):
    """
    When newcomers that slow others are queued again (Horus's baseline PAB).

    A started job is checked once: if a job that shares some of its GPUs has lost this much speed since, the newcomer
    is stopped and queued again, at the end.
    """

    after_ms: Annotated[Milliseconds, Field(ge=1)] = 60_000
    """Time from the start of the job to the check."""
    slower_percent: Annotated[int, Field(ge=1, le=99)] = 50
    """Loss of speed at which the newcomer is stopped."""
    one_by_one: bool = False
    """Whether no other job starts before a newcomer has been checked."""


class InterferenceMonitor(Monitor):
    """For each newcomer, when it is examined and how fast its neighbours ran before."""

    def __init__(self, watch: Watch, occupancy: Occupancy[Held]) -> None:
        self._watch, self._occupancy = watch, occupancy
        self._due: dict[str, tuple[int, dict[str, int]]] = {}

    def ended(self, held: Held, now_ms: Milliseconds) -> None:
        """Examine a job that has left its place no more."""
        del now_ms
        self._due.pop(held.job.id, None)

    def newcomer(self, placement: Placement, new: set[str], now_ms: int, slowdown: Callable[[str], int]) -> None:
        """Schedule the examination of a job that shares GPUs with others than ``new`` jobs; note their slowdowns."""
        neighbours = self._neighbours(placement) - new
        if neighbours:
            before = {other: known for other in sorted(neighbours) if (known := slowdown(other))}
            self._due[placement.job] = now_ms + self._watch.after_ms, before

    def watches(self, job: str) -> bool:
        """Return whether a job is going to be examined."""
        return job in self._due

    def holds_back(self, new: Iterable[Placement]) -> bool:
        """Return whether no other job may start, since one of ``new`` or an earlier one is to be examined."""
        return self._watch.one_by_one and (bool(self._due) or any(self._neighbours(placement) for placement in new))

    def _neighbours(self, placement: Placement) -> set[str]:
        return {other for gpu in gpus_of(placement) for other in self._occupancy.on_gpu[gpu]} - {placement.job}

    @property
    def next_ms(self) -> int | None:
        """When the next job is examined; None: never."""
        return min((at for at, _ in self._due.values()), default=None)

    def due(self, now_ms: int) -> list[tuple[str, dict[str, int]]]:
        """Remove and return the jobs to be examined now, with the slowdowns of their neighbours before they came."""
        due_jobs = [(job, before) for job, (at, before) in sorted(self._due.items()) if at <= now_ms]
        for job, _ in due_jobs:
            del self._due[job]
        return due_jobs

    def disturbs(self, before: dict[str, int], slowdown: Callable[[str], int]) -> bool:
        """Return whether a neighbour has lost too much speed; ``before``: earlier slowdowns of those that still run."""
        speed = 100 - self._watch.slower_percent
        return any(slowdown(other) * speed >= 100 * then for other, then in before.items())


WATCHES.register("slowed", InterferenceMonitor, Watch)
