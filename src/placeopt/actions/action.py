"""What a scheduler does to carry out a plan: one action for each job that starts, moves, shrinks or stops."""

from __future__ import annotations

from typing import Literal

from placeopt.model.base import Count, GpuIndex, Id, Record, Revision
from placeopt.model.job import Origin

ActionKind = Literal["start", "move", "shrink", "preempt"]


class ActionPart(Record):
    """One worker of an action."""

    rank: Count
    """Rank of the worker: among ``parts`` the one that it has after the action, among ``leaves`` the one before."""
    node: Id
    """Node on which it is."""
    gpus: tuple[GpuIndex, ...] = ()
    """Indices of its GPUs on the node."""
    origin: Origin | None = None
    """The worker in the system that it comes from, where the job states it."""


class Action(Record):
    """One step. All room that it takes is free once the steps in ``after`` are done."""

    do: ActionKind
    """``move``: stop it, then start it elsewhere; ``shrink``: stop some of its workers; ``preempt``: stop all."""
    job: Id
    """Name of the job."""
    revision: Revision
    """Revision of the instance that the plan is for."""
    origin: Origin | None = None
    """The job in the system that it comes from."""
    parts: tuple[ActionPart, ...] = ()
    """Workers that run once it is done, of a start those that start; none of a job that is preempted."""
    leaves: tuple[ActionPart, ...] = ()
    """Workers that it stops where they run now."""
    after: tuple[Count, ...] = ()
    """Numbers of the actions, from 0, that have to be done before."""
