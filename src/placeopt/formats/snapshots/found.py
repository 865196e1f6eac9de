"""What is common to all resource managers: jobs that were seen become a round."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from pydantic import ValidationError

from placeopt.errors import BadInput
from placeopt.formats.faults import validation_fault
from placeopt.model import Assignment, Cluster, Instance, Job, Policy, Running, WorkerGpus
from placeopt.model.base import Record
from placeopt.model.policy import Fragmentation, Weights

R = TypeVar("R", bound=Record)
WHOLE = 1000


@dataclass(frozen=True)
class Worker:
    """A worker that runs: where, and on which GPUs of the node; None where the manager does not tell."""

    node: str
    gpus: tuple[int, ...] | None = None


@dataclass(frozen=True)
class Seen:
    """A job as it was seen; ``workers`` is empty if it waits."""

    job: Job
    workers: tuple[Worker, ...] = ()
    started_ms: int = 0
    expected_end_ms: int | None = None
    priority: int = 0
    """As the manager has it, of any size; the job states its rank among those seen."""
    where: str = ""
    """What messages call it: file and path."""


@dataclass
class Notes:
    """What a reader left out or assumed, for the instance's note."""

    left_out: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))
    assumed: dict[str, None] = field(default_factory=dict)

    def leave_out(self, reason: str, job: str) -> None:
        """Count a job that does not become part of the round."""
        self.left_out[reason].append(job)

    def assume(self, sentence: str) -> None:
        """Keep a sentence once."""
        self.assumed[sentence] = None

    def text(self) -> str:
        """Return all of it, a sentence each."""
        told = list(self.assumed)
        for reason, jobs in self.left_out.items():
            some = ", ".join(jobs[:3]) + (", ..." if len(jobs) > 3 else "")
            told.append(f"Left out, {reason}: {len(jobs)} ({some}).")
        return " ".join(told)


def made(record: type[R], where: str, /, **fields: object) -> R:
    """Make a record; what the model refuses becomes bad input at ``where``."""
    try:
        return record(**fields)
    except ValidationError as error:
        raise validation_fault(record, error, where) from None


def snapshot_policy(name: str, levels: Iterable[str]) -> Policy:
    """
    Return the policy of a snapshot: the fewest GPUs stranded on partly used nodes and domains.

    Resource managers tell neither traffic nor interference, so neither costs anything.
    """
    weights = {"node": 1, **dict.fromkeys(levels, 1)}
    return Policy(
        name=name,
        weights=Weights(communication=0, interference=0, fragmentation=1000),
        fragmentation=Fragmentation(level_weights=weights),
    )


def instance_of(name: str, note: str, now_ms: int, cluster: Cluster, seen: Sequence[Seen], policy: Policy) -> Instance:
    """
    Make the round of what was seen.

    GPUs that the manager does not tell are the lowest with room, after those that it does.

    Raises
    ------
    BadInput
        If a job is on a node that is not there, or on GPUs that its node lacks or has given to others.
    """
    sizes = {machine.id: len(machine.gpus) for machine in cluster.machines}
    gpus_of = {node.id: sizes[node.machine] for node in cluster.nodes}
    held: dict[str, list[int]] = {node: [0] * gpus for node, gpus in gpus_of.items()}
    for one in seen:
        share = one.job.options[0].demand.gpu_milli
        for worker in one.workers:
            if worker.node not in gpus_of:
                raise BadInput(f"{one.where}: runs on node {worker.node!r}, which is not among the nodes")
            for gpu in worker.gpus or ():
                if gpu >= gpus_of[worker.node]:
                    raise BadInput(
                        f"{one.where}: holds GPU {gpu} of node {worker.node!r}, which has {gpus_of[worker.node]}"
                    )
                held[worker.node][gpu] += share
    running = tuple(_running(one, held) for one in seen if one.workers)
    try:
        return Instance(
            name=name,
            now_ms=now_ms,
            note=note[:10_000],
            cluster=cluster,
            jobs=_ranked(seen),
            running=running,
            policy=policy,
        )
    except ValidationError as error:
        raise validation_fault(Instance, error, name) from None


def _ranked(seen: Sequence[Seen]) -> tuple[Job, ...]:
    """Return the jobs with ranks for priorities, 0 for the lowest: managers' own go beyond what a job may state."""
    rank = {priority: i for i, priority in enumerate(sorted({one.priority for one in seen}))}
    return tuple(
        one.job.model_copy(update={"priority": rank[one.priority]}) if rank[one.priority] else one.job for one in seen
    )


def _running(one: Seen, held: dict[str, list[int]]) -> Running:
    """Put a job's workers together node by node, and find GPUs for those whose are not told."""
    option = one.job.options[0]
    demand = option.demand
    by_node: dict[str, list[WorkerGpus]] = {}
    for rank, worker in enumerate(one.workers):
        beside = by_node.setdefault(worker.node, [])
        gpus = worker.gpus
        if gpus is None:
            mine = {gpu for other in beside for gpu in other.gpus}
            gpus = _free(one, worker.node, held[worker.node], demand.gpus, demand.gpu_milli, mine)
        beside.append(WorkerGpus(rank=rank, gpus=gpus))
    return Running(
        job=one.job.id,
        option=option.id,
        assignments=tuple(
            Assignment(
                node=node,
                gpus={str(gpu): demand.gpu_milli for worker in workers for gpu in worker.gpus},
                cpu_millicores=len(workers) * demand.cpu_millicores,
                memory_mib=len(workers) * demand.memory_mib,
                workers=tuple(workers),
            )
            for node, workers in by_node.items()
        ),
        started_ms=one.started_ms,
        expected_end_ms=one.expected_end_ms,
    )


def _free(one: Seen, node: str, held: list[int], count: int, share: int, mine: set[int]) -> tuple[int, ...]:
    room = [gpu for gpu, milli in enumerate(held) if milli + share <= WHOLE and gpu not in mine][:count]
    if len(room) < count:
        raise BadInput(
            f"{one.where}: holds {count} more of the GPUs of node {node!r}, of which {len(room)} are left; "
            "were nodes and jobs listed at the same time?"
        )
    for gpu in room:
        held[gpu] += share
    return tuple(room)
