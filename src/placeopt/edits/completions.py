"""What was not read of a cluster, and the round as free as that allows: what is true of both is true of the cluster."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from placeopt.edits.records import changed
from placeopt.model import (
    Assignment,
    Demand,
    Instance,
    Job,
    Node,
    NodeConditions,
    Option,
    Running,
    Toleration,
    WorkerGpus,
)

T = TypeVar("T")
Of = Literal["cluster", "reading"]
"""What an answer is true of: the cluster, or only what was read of it."""
ANYWHERE: dict[str, Any] = {
    "conditions": NodeConditions(tolerations=(Toleration(operator="Exists"),)),
    "conditions_unread": False,
}


@dataclass(frozen=True)
class Unread:
    """
    What was not read and could change an answer.

    ``left_out``: waiting jobs that could not be read. ``drained``: nodes that take no work since they could not be
    read. ``kept``: running jobs of which it is not known what they hold. ``conditions``: jobs of which it is not known
    where else they may run.
    """

    left_out: tuple[str, ...] = ()
    drained: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    conditions: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All of them, each once."""
        return tuple(dict.fromkeys((*self.left_out, *self.drained, *self.kept, *self.conditions)))

    def strictest(self, instance: Instance) -> Instance:
        """Return the completion in which least is possible: jobs that could not be read may run only where they do."""
        there = {
            one.job: tuple(part.node for part in one.assignments) for one in instance.running if one.job in self.kept
        }
        jobs = tuple(
            job.with_conditions(nodes_allowed=there[job.id]) if job.id in there else job for job in instance.jobs
        )
        return changed(instance, jobs=jobs) if there else instance

    def freest(self, instance: Instance) -> Instance:
        """
        Return the completion in which most is possible.

        Nodes that could not be read take new work, running jobs that could not be read hold nothing and may be changed,
        and jobs of unread conditions may run on any node, beside what their relations allow.
        """
        drained, kept, free = set(self.drained), set(self.kept), set(self.conditions)
        nodes = tuple(_open(node) if node.id in drained else node for node in instance.cluster.nodes)
        held = {one.job: one for one in instance.running if one.job in kept}
        jobs = tuple(
            _small(job, held[job.id]) if job.id in held else changed(job, **ANYWHERE) if job.id in free else job
            for job in instance.jobs
        )
        running = tuple(_holding_nothing(one) if one.job in held else one for one in instance.running)
        cluster = changed(instance.cluster, nodes=nodes)
        return changed(instance, cluster=cluster, jobs=jobs, running=running, reading=())


def unread_in(instance: Instance, *, waiting: bool = True, moved: Collection[str] | None = None) -> Unread:
    """
    Return what was not read and could change an answer about a round.

    ``waiting``: Whether the answer is about waiting jobs, too. ``moved``: Jobs that it may move; None: those that the
    policy and their own flags allow to be moved.
    """
    names: dict[str, set[str]] = {}
    for note in instance.reading:
        names.setdefault(note.kind, set()).update(note.names)
    if not names and not any(job.conditions_unread for job in instance.jobs):
        return Unread()
    if moved is None:
        moves = instance.policy.changes.moves_max > 0
        moved = {one.job for one in instance.running if moves and one.movable}
    kept = instance.kept_unread
    return Unread(
        left_out=tuple(sorted(names.get("left out", ()))) if waiting else (),
        drained=tuple(
            node.id for node in instance.cluster.nodes if node.drained and node.id in names.get("drained", ())
        ),
        kept=tuple(job.id for job in instance.jobs if job.id in kept),
        conditions=tuple(job.id for job in instance.jobs if job.conditions_unread and job.id in moved),
    )


def truth(unread: Unread, same: Callable[[], bool]) -> tuple[Of, tuple[str, ...]]:
    """
    Return what an answer is true of, and what of it was not read.

    ``same``: Whether the freest completion has the same answer; asked only where that decides.
    """
    if not unread.names or (not unread.left_out and same()):
        return "cluster", ()
    return "reading", unread.names


def _open(node: Node) -> Node:
    return changed(node, drained=False)


def _small(job: Job, held: Running) -> Job:
    """Return the job as one worker that asks for nothing, worth what it is worth where it runs."""
    option = Option(id=held.option, demand=Demand(gpus=0), value=max(option.value for option in job.options))
    return changed(job, options=(option,), relations=(), **ANYWHERE)


def _holding_nothing(held: Running) -> Running:
    node = held.assignments[0].node
    place = (Assignment(node=node, workers=(WorkerGpus(rank=0),)),)
    return changed(held, assignments=place, movable=True, shrinkable=True, preemptible=True)
