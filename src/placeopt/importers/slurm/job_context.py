"""What every job of Slurm's list is read with, and the records that jobs become."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from placeopt.documents.faults import make_record
from placeopt.errors import BadInput
from placeopt.importers.import_notes import ImportNotes
from placeopt.importers.json_entry import JsonEntry
from placeopt.importers.observed_round import ObservedJob, ObservedWorker, origin_of
from placeopt.importers.priority_rule import PriorityRule
from placeopt.importers.slurm.job_requests import JobLeftOut, milliseconds, reason_of, slurm_number
from placeopt.importers.slurm.licenses import Licenses
from placeopt.importers.slurm.nodes import SlurmNode
from placeopt.importers.slurm.preemption import SlurmPreemption
from placeopt.importers.slurm.unread_fields import UnreadFields
from placeopt.model import Cluster, Demand, Job, Option


@dataclass(frozen=True)
class JobContext:
    """The nodes of a list, the cluster's settings as far as they are given, and where notes go."""

    nodes: Mapping[str, SlurmNode]
    cluster: Cluster
    notes: ImportNotes
    rule: PriorityRule
    preemption: SlurmPreemption
    unread: UnreadFields
    now_ms: int
    licenses: Licenses | None = None
    whole_kinds: set[str] = field(default_factory=set)
    """Of nodes that waiting jobs ask for as a whole."""

    @property
    def kept_cpus(self) -> int:
        """The least number of CPUs that a node keeps for each of its GPUs, of nodes that keep some; 0: none does."""
        return min((node.cpus_per_gpu for node in self.nodes.values() if node.cpus_per_gpu), default=0)

    def value(self, entry: JsonEntry, gpus: int) -> int:
        """Return the value of a job of that many GPUs."""
        return self.rule.value(gpus, self.rule.gpu_value(slurm_number(entry, "priority") or 0, job_classes(entry)))


def job_classes(entry: JsonEntry) -> list[str]:
    """Return the classes of a job by which a rule may name it: its QOS, then its partitions."""
    return [entry.text("qos", ""), *entry.text("partition", "").split(",")]


def job_name(entry: JsonEntry) -> str:
    """Return the id of a job as Slurm's commands write it: ``7``, or ``7_2`` of a task of an array."""
    own = slurm_number(entry, "job_id")
    if own is None:
        raise entry.bad("job_id", "a number")
    array, task = slurm_number(entry, "array_job_id") or 0, slurm_number(entry, "array_task_id")
    return f"{array}_{task}" if array and task is not None else str(own)


def make_job(entry: JsonEntry, name: str, options: tuple[Option, ...], where: Mapping[str, object]) -> Job:
    """Make the job of an entry; parts of a job that are jobs of their own, ``ID+1``, have its origin."""
    return make_record(
        Job,
        entry.where,
        id=name,
        kind="training" if options[0].gpu_milli else "cpu",
        user=entry.text("user_name", "") or None,
        queue=entry.text("partition", "").split(",")[0] or None,
        arrival_ms=milliseconds(entry, "submit_time", 1000) or 0,
        options=options,
        origin=origin_of(entry.text("name", "") or name, name.partition("+")[0]),
        **where,
    )


def unreadable_job(
    entry: JsonEntry, name: str, nodes: Iterable[str], error: JobLeftOut | BadInput, least: Demand | None = None
) -> ObservedJob:
    """Return a job that holds whole nodes, because what it holds cannot be read; ``least``: what it has on each."""
    workers = tuple(map(ObservedWorker, dict.fromkeys(nodes)))
    option = make_record(Option, entry.where, workers=len(workers), demand=least or Demand(gpus=0))
    job = Job(id=name, kind="cpu", options=(option,))
    return ObservedJob(job, workers, where=entry.where, unreadable_reason=reason_of(entry, error))
