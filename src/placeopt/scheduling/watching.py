"""A later look at jobs that have started beside others: what rounds that place job by job ask of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable

from placeopt.model import Placement
from placeopt.scheduling.occupancy import Follower, Held


class Monitor(Follower[Held], ABC):
    """The newcomers that are to be examined; those that leave their place are not any more."""

    @abstractmethod
    def newcomer(self, placement: Placement, new: set[str], now_ms: int, slowdown: Callable[[str], int]) -> None:
        """Note a job that starts together with ``new`` ones, and the slowdowns of its neighbours before."""

    @abstractmethod
    def watches(self, job: str) -> bool:
        """Return whether a job is going to be examined."""

    @abstractmethod
    def holds_back(self, new: Iterable[Placement]) -> bool:
        """Return whether no other job may start before one of ``new``, or an earlier one, is examined."""

    @property
    @abstractmethod
    def next_ms(self) -> int | None:
        """When the next job is examined; None: never."""

    @abstractmethod
    def due(self, now_ms: int) -> list[tuple[str, dict[str, int]]]:
        """Remove and return the jobs to be examined now, with the slowdowns of their neighbours before they came."""

    @abstractmethod
    def disturbs(self, before: dict[str, int], slowdown: Callable[[str], int]) -> bool:
        """Return whether a neighbour has lost too much speed; ``before``: earlier slowdowns of those that still run."""
