"""What happens to the cluster of a scenario over time, as steps of edits, and the hardware that it has at each time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated

from pydantic import Field

from placeopt.edits import AnyStep, ChangeQueue, HardwareStep, RemoveJobs, SetPolicy, apply, at_step
from placeopt.errors import BadInput
from placeopt.model import Cluster, Domain, Instance, Machine, Node
from placeopt.model.base import Milliseconds, Record

SEEN = HardwareStep | RemoveJobs | SetPolicy | ChangeQueue
Hardware = Machine | Domain | Node
EXPECTED = "expected steps about nodes, remove_jobs, set_policy or change_queue; jobs come as arrivals"


class ScenarioEvent(Record):
    """Steps that are carried out at a time: nodes fail, return or come, jobs are withdrawn, the policy changes."""

    at_ms: Milliseconds
    """Time in the scenario."""
    steps: Annotated[tuple[AnyStep, ...], Field(min_length=1)]
    """
    Steps as in patch files. Jobs that they stop wait with the work that is left; a job that is removed is withdrawn,
    whether it runs, waits or would arrive later. A node, and a machine type, stay what they are: others have other ids.
    """


def clusters_of(cluster: Cluster, events: Iterable[ScenarioEvent]) -> Iterator[tuple[int, Cluster]]:
    """Yield the cluster, and that after each event, each with its time; raises `BadInput` for what cannot be."""
    now, last = Instance(cluster=cluster), 0
    kept = _by_id(cluster)
    yield 0, cluster
    for number, event in enumerate(events):
        try:
            if event.at_ms < last:
                raise BadInput(f"at_ms: {event.at_ms}, but the event before is at {last}; expected the order of time")
            for place, step in enumerate(event.steps):
                if not isinstance(step, SEEN):
                    raise at_step(place, step, BadInput(EXPECTED))
            now = apply(now, [step for step in event.steps if isinstance(step, HardwareStep)])
            if now.holds:
                raise BadInput("steps: GPUs fail; in a simulation nodes fail whole, or come with fewer GPUs")
            for (kind, name), record in _by_id(now.cluster).items():
                if _fixed(kept.setdefault((kind, name), record)) != _fixed(record):
                    raise BadInput(f"steps: {kind} {name!r} would become another; give the new one an id of its own")
        except BadInput as error:
            raise BadInput(f"events[{number}].{error}") from None
        last = event.at_ms
        yield last, now.cluster


def all_hardware(clusters: Iterable[tuple[int, Cluster]]) -> Cluster:
    """Return a cluster of everything that some clusters have, each as it is first."""
    parts = [cluster for _, cluster in clusters]
    first: dict[str, dict[str, Hardware]] = {"machines": {}, "domains": {}, "nodes": {}}
    for cluster in parts:
        for field, records in first.items():
            for record in getattr(cluster, field):
                records.setdefault(record.id, record)
    return parts[0].model_copy(update={field: tuple(records.values()) for field, records in first.items()})


def _by_id(cluster: Cluster) -> dict[tuple[str, str], Hardware]:
    parts: tuple[Hardware, ...] = (*cluster.machines, *cluster.domains, *cluster.nodes)
    return {(type(one).__name__.lower(), one.id): one for one in parts}


def _fixed(record: Hardware) -> object:
    """Return what does not change of hardware while it has its id: how fast jobs run there depends on it."""
    if isinstance(record, Node):
        return record.machine, record.domain
    return (record.level, record.parent) if isinstance(record, Domain) else record
