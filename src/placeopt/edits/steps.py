"""The steps of patch files: all kinds, those that change the policy, the holds and the time among them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from placeopt.documents.faults import make_record
from placeopt.edits.hardware_steps import (
    AddDomains,
    AddMachines,
    AddNodes,
    Drain,
    Fail,
    Label,
    PutNodes,
    RemoveNodes,
    ReplaceNodes,
    SetAmount,
    TaintNodes,
)
from placeopt.edits.job_steps import (
    AddJobs,
    ChangeJob,
    ChangeRunning,
    RemoveJobs,
    ScaleArrivals,
    ScaleDemand,
    Start,
    Stop,
)
from placeopt.edits.nodes import free_prefix
from placeopt.edits.records import changed, merged, refusal, refuse_unknown, some
from placeopt.edits.step import Ids, Step
from placeopt.errors import BadArgument
from placeopt.model import Instance, Record
from placeopt.model.base import FormatVersion, Id, Milliseconds, Name


class SetPolicy(Step):
    """Change fields of the policy: a JSON merge patch (RFC 7396)."""

    do: Literal["set_policy"]
    fields: dict[str, Any]
    """Of `Policy`."""

    def edited(self, before: Instance) -> Instance:
        """Return the round with the policy."""
        return changed(before, policy=merged(before.policy, self.fields, "fields"))


class ChangeQueue(Step):
    """Change fields of a queue of the policy, such as one quota: a JSON merge patch (RFC 7396)."""

    do: Literal["change_queue"]
    queue: Id
    """Its id."""
    fields: dict[str, Any]
    """Of `Queue`."""

    def edited(self, before: Instance) -> Instance:
        """Return the round with the queue."""
        policy = before.policy
        refuse_unknown("queue", "queue", [self.queue], [queue.id for queue in policy.queues])
        queues = tuple(
            merged(queue, self.fields, "fields") if queue.id == self.queue else queue for queue in policy.queues
        )
        return changed(before, policy=changed(policy, queues=queues))


class RemoveHolds(Step):
    """Release room that is held without a job."""

    do: Literal["remove_holds"]
    holds: Ids
    """By id."""

    def edited(self, before: Instance) -> Instance:
        """Return the round without the holds."""
        refuse_unknown("holds", "hold", self.holds, {hold.id for hold in before.holds})
        return changed(before, holds=tuple(hold for hold in before.holds if hold.id not in self.holds))


class SetTime(Step):
    """Let time go on: holds begin and end, and jobs have waited for longer."""

    do: Literal["set_time"]
    now_ms: Milliseconds
    """The new time, in ms; not earlier than before."""

    def edited(self, before: Instance) -> Instance:
        """Return the round at that time."""
        if self.now_ms < before.now_ms:
            raise refusal("now_ms", f"{self.now_ms}, but it is {before.now_ms} already; time goes forward")
        return changed(before, now_ms=self.now_ms)


AnyStep = Annotated[
    AddMachines
    | AddDomains
    | AddNodes
    | PutNodes
    | RemoveNodes
    | Fail
    | ReplaceNodes
    | Drain
    | TaintNodes
    | Label
    | SetAmount
    | SetPolicy
    | ChangeQueue
    | ChangeJob
    | AddJobs
    | RemoveJobs
    | Start
    | ChangeRunning
    | Stop
    | RemoveHolds
    | SetTime
    | ScaleDemand
    | ScaleArrivals,
    Field(discriminator="do"),
]


class Patch(Record):
    """A scenario: steps, carried out one after the other on a copy of a round."""

    document: Literal["patch"] = "patch"
    """What the file is."""
    format_version: FormatVersion = 2
    name: Name = "scenario"
    note: Annotated[str, Field(max_length=10_000)] = ""
    steps: tuple[AnyStep, ...] = ()


def more_nodes(before: Instance, node_type: str, count: int = 1, *, mark: str = "") -> AddNodes:
    """
    Return the step that adds nodes of a machine type, or copies of a node; their ids are free.

    ``mark`` keeps apart the nodes of several such steps. Raises `BadArgument` where there is no such type or node.
    """
    is_node = any(node.id == node_type for node in before.cluster.nodes)
    types = [machine.id for machine in before.cluster.machines]
    if not is_node and node_type not in types:
        known = some(types)
        raise BadArgument(f"node type {node_type!r}: no machine type and no node of that name; machine types: {known}")
    place = {"like" if is_node else "machine": node_type}
    prefix = free_prefix(before.cluster) + mark
    return make_record(AddNodes, "nodes added", do="add_nodes", count=count, prefix=prefix, **place)
