"""A cluster that a policy divides between jobs: what rounds that place job by job ask of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Iterable, Mapping
from typing import Protocol

from placeopt.model import Cluster, Job, Queue
from placeopt.scheduling.free_resources import FreeResources
from placeopt.scheduling.occupancy import Follower, Held
from placeopt.scheduling.placement_amounts import Amounts
from placeopt.scheduling.policy import Scheduling
from placeopt.scheduling.rules import DIVISIONS
from placeopt.scheduling.setting import Setting
from placeopt.scheduling.waiting_queue import JobQueue


class NodeDivision(Follower[Held], ABC):
    """Nodes that are divided, too."""

    @abstractmethod
    def fitted(self, job: Job) -> Job:
        """Return a job with as many cores as its part has of a node, where it asks for more."""

    @abstractmethod
    def homes(self, job: Job, free: FreeResources) -> Iterable[tuple[str, ...]]:
        """Return sets of nodes on which a job is placed within its own part, the first in which it finds room."""


class Division(Protocol):
    """Parts of a cluster, each of some of the jobs."""

    @property
    def queues(self) -> tuple[Queue, ...]:
        """The parts, as queues of a round's policy."""
        ...

    @property
    def nodes(self) -> NodeDivision | None:
        """How nodes are divided; None: they are not."""
        ...

    @property
    def by_jobs(self) -> Mapping[Hashable, Amounts]:
        """The parts, by what their jobs have in common."""
        ...

    def of(self, job: Job) -> str:
        """Return the part of a job, as the id of a queue."""
        ...

    def queue(self, cluster: Cluster, *, fair: bool) -> JobQueue:
        """
        Return an empty queue of the parts, the one that holds least of its own first.

        ``fair``: By dominant resource fairness between the users of a part, else in order of arrival.
        """
        ...


def division_of(setting: Setting, scheduling: Scheduling) -> Division | None:
    """Return how a policy divides a cluster; None: it does not."""
    return None if scheduling.divides is None else DIVISIONS[scheduling.divides](setting, scheduling.divides)
