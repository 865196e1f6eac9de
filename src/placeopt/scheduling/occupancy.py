"""Who holds what: the jobs that run, in the order in which they started, everywhere, on each node and on each GPU."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from placeopt.model import Job, Option, Placement
from placeopt.model.base import Milliseconds
from placeopt.scheduling.placement_amounts import gpus_of

Gpu = tuple[str, str]
"""Node and index."""


@dataclass(frozen=True)
class Held:
    """A running job as a scheduler sees it."""

    job: Job
    """As it was submitted last."""
    placement: Placement
    """With the shares that it requests."""
    option: Option
    """The one that it runs in, with the demand that it has there."""
    since_ms: Milliseconds
    """When it started there."""


class Holder(Protocol):
    """What a running job is to an occupancy."""

    @property
    def placement(self) -> Placement:
        """Where it is."""
        ...


H = TypeVar("H", bound=Holder)


class Follower(Generic[H]):
    """What keeps an account of running jobs in other terms than nodes and GPUs, such as by user; by default none."""

    def started(self, held: H) -> None:
        """Account for a job that has just taken its place."""

    def ended(self, held: H, now_ms: Milliseconds) -> None:
        """Account for a job that has just left its place."""


class Occupancy(Generic[H]):
    """
    The one account of who holds what.

    A scheduler has one, with what it has decided; a simulation another, with what has happened. It changes by `start`
    and `end` alone, after which its followers do.
    """

    def __init__(self) -> None:
        self.running: dict[str, H] = {}
        self.on_node: defaultdict[str, dict[str, H]] = defaultdict(dict)
        self.on_gpu: defaultdict[Gpu, dict[str, H]] = defaultdict(dict)
        self.num_changes = 0
        self._followers: list[Follower[H]] = []

    def follow(self, follower: Follower[H]) -> None:
        """Report all changes from now on."""
        self._followers.append(follower)

    def start(self, held: H) -> None:
        """Let a job take its place."""
        job = held.placement.job
        self.running[job] = held
        for assignment in held.placement.assignments:
            self.on_node[assignment.node][job] = held
        for gpu in gpus_of(held.placement):
            self.on_gpu[gpu][job] = held
        self.num_changes += 1
        for follower in self._followers:
            follower.started(held)

    def end(self, job: str, now_ms: Milliseconds) -> H:
        """Let a job leave its place; return what it held."""
        held = self.running.pop(job)
        for assignment in held.placement.assignments:
            del self.on_node[assignment.node][job]
        for gpu in gpus_of(held.placement):
            del self.on_gpu[gpu][job]
        self.num_changes += 1
        for follower in self._followers:
            follower.ended(held, now_ms)
        return held
