"""
What is common to all resource managers: jobs that were seen become a round, by one rule for what cannot be read.

Unknown and waiting: left out, and counted by reason. Unknown and running: kept, and all that it may hold counts as
used, in doubt the whole node. Unknown node: drained. Each of these stands in the instance's note, and the command line
prints it on standard error.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, islice
from typing import TypeVar

from pydantic import ValidationError

from placeopt.errors import BadInput
from placeopt.formats.faults import validation_fault
from placeopt.model import Assignment, Cluster, Demand, Instance, Job, Option, Policy, Running, WorkerGpus
from placeopt.model.base import Record
from placeopt.model.policy import Fragmentation, Weights

R = TypeVar("R", bound=Record)
WHOLE = 1000
MAX_GPUS = 1024
"""Indices of GPUs end below it."""
NAMED = 3
"""Jobs or nodes that a line of the note names; it counts all of them."""
NOTE_LENGTH = 9000
"""Of an instance's 10,000 characters of note; the rest is for where the data come from."""

LEFT_OUT = "Left out"
KEPT = "Kept as running"
DRAINED = "Drained"


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
    unread: str | None = None
    """Why it is not known what the job holds of its nodes: each is drained, and the job holds all GPUs left there."""


@dataclass
class Notes:
    """What a reader left out, kept in doubt, drained or assumed: for the instance's note and standard error."""

    counted: dict[tuple[str, str], dict[str, None]] = field(default_factory=lambda: defaultdict(dict))
    """(heading, reason) -> names of jobs or nodes, each once."""
    assumed: dict[str, None] = field(default_factory=dict)

    def leave_out(self, reason: str, job: str) -> None:
        """Count a job that waits and does not become part of the round."""
        self.counted[LEFT_OUT, reason][job] = None

    def keep(self, reason: str, job: str) -> None:
        """Count a job that runs and is kept, though not all of it could be read or agrees with the nodes."""
        self.counted[KEPT, reason][job] = None

    def drain(self, reason: str, node: str) -> None:
        """Drain a node, and count it; `instance_of` sets the flag."""
        self.counted[DRAINED, reason][node] = None

    def assume(self, sentence: str) -> None:
        """Keep a sentence once."""
        self.assumed[sentence] = None

    @property
    def drained(self) -> set[str]:
        """Nodes that are drained for any reason."""
        return {node for (heading, _), nodes in self.counted.items() if heading == DRAINED for node in nodes}

    def text(self) -> str:
        """
        Return all of it, a line each: what is assumed, then counts by reason with the first `NAMED` names.

        Characters that cannot be printed become ``?``. What goes beyond `NOTE_LENGTH` is counted in the last line.
        """
        lines = [(sentence, 0) for sentence in self.assumed]
        for (heading, reason), names in self.counted.items():
            some = ", ".join(name[:60] for name in islice(names, NAMED)) + (", ..." if len(names) > NAMED else "")
            lines.append((f"{heading}, {reason[:200]}: {len(names)} ({some}).", len(names)))
        length = list(accumulate(len(line) + 1 for line, _ in lines))
        fits = bisect_right(length, NOTE_LENGTH)
        told = [line for line, _ in lines[:fits]]
        if rest := lines[fits:]:
            told.append(f"Reasons that do not fit here: {len(rest)}, jobs and nodes: {sum(n for _, n in rest)}.")
        return "\n".join(_printable(line) for line in told)


def _printable(text: str) -> str:
    return "".join(sign if sign.isprintable() else "?" for sign in text)


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


def instance_of(
    name: str, source: str, notes: Notes, now_ms: int, cluster: Cluster, seen: Sequence[Seen], policy: Policy
) -> Instance:
    """
    Make the round of what was seen.

    Parameters
    ----------
    name
        Of the instance.
    source
        Where the data come from; the first line of the instance's note. The other lines are ``notes``.
    notes
        What the reader counted so far; jobs that do not agree with the nodes and nodes that are drained are added.
    now_ms
        Time of the snapshot.
    cluster
        Its nodes. Nodes that ``notes`` drains become ``drained``.
    seen
        All jobs. `Seen.unread` ones hold every GPU of their nodes that no other job holds.
    policy
        Of the instance.

    Returns
    -------
    Instance
        A job that runs stays where it is, also on a node that the cluster does not list and on GPUs that its node does
        not list: nodes and jobs are often listed at slightly different moments, and the machine that is gone from the
        one list stands in the other. GPUs that the manager does not tell are the lowest with room, after those that it
        does; where fewer are left than the job holds, the others have indices beyond the node's. Where two jobs are
        told to hold one GPU, together beyond the whole of it, the one that started last keeps it, and the other's GPUs
        on that node count as not told: so all that both may hold counts as used. Each of these is counted in ``notes``.

    Raises
    ------
    BadInput
        If jobs hold more than 1024 GPUs of a node, or the model refuses the instance.
    """
    sizes = {machine.id: len(machine.gpus) for machine in cluster.machines}
    gpus = _Gpus({node.id: sizes[node.machine] for node in cluster.nodes}, notes)
    settled = list(seen)
    read = [i for i, one in enumerate(seen) if one.unread is None]
    for i in sorted(read, key=lambda i: -seen[i].started_ms):
        settled[i] = gpus.told(seen[i])
    for i in read:
        settled[i] = gpus.found(settled[i])
    for i, one in enumerate(seen):
        if one.unread is not None:
            settled[i] = gpus.rest(one)
    if drained := notes.drained:
        nodes = tuple(
            node.model_copy(update={"drained": True}) if node.id in drained else node for node in cluster.nodes
        )
        cluster = cluster.model_copy(update={"nodes": nodes})
    try:
        return Instance(
            name=name,
            now_ms=now_ms,
            note=f"{source[:900]}\n{notes.text()}".strip(),
            cluster=cluster,
            jobs=_ranked(settled),
            running=tuple(_running(one) for one in settled if one.workers),
            policy=policy,
        )
    except ValidationError as error:
        raise validation_fault(Instance, error, name) from None


class _Gpus:
    """How much of each GPU of each node is held; finds GPUs for workers whose own are not told."""

    def __init__(self, sizes: dict[str, int], notes: Notes) -> None:
        self._sizes, self._notes = sizes, notes
        self._held: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))

    def told(self, one: Seen) -> Seen:
        """Take the GPUs that are told; those of a node where another job has taken one of them become not told."""
        share = one.job.options[0].demand.gpu_milli
        mine = Counter((worker.node, gpu) for worker in one.workers for gpu in worker.gpus or ())
        twice = {node for (node, gpu), n in mine.items() if n > 1 or self._held[node][gpu] + share > WHOLE}
        if twice:
            self._notes.keep("GPUs are told to be held twice; others counted as used instead", one.job.id)
            one = replace(
                one,
                workers=tuple(
                    replace(worker, gpus=None) if worker.gpus and worker.node in twice else worker
                    for worker in one.workers
                ),
            )
        for worker in one.workers:
            for gpu in worker.gpus or ():
                self._held[worker.node][gpu] += share
        return one

    def found(self, one: Seen) -> Seen:
        """Return a job with all its GPUs: where they are not told, the lowest with room."""
        demand = one.job.options[0].demand
        workers = []
        mine: dict[str, set[int]] = defaultdict(set)
        for worker in one.workers:
            mine[worker.node].update(worker.gpus or ())
        for worker in one.workers:
            gpus = worker.gpus
            if gpus is None:
                gpus = self._free(one, worker.node, demand.gpus, demand.gpu_milli, mine[worker.node])
                mine[worker.node].update(gpus)
            workers.append(replace(worker, gpus=gpus))
            if worker.node not in self._sizes:
                self._notes.keep("on a node that is not listed", one.job.id)
            elif any(gpu >= self._sizes[worker.node] for gpu in gpus):
                self._notes.keep("on more GPUs than its node has or has left", one.job.id)
        return replace(one, workers=tuple(workers))

    def rest(self, one: Seen) -> Seen:
        """Return a job of which it is not known what it holds: with all GPUs left on its nodes."""
        nodes = tuple(dict.fromkeys(worker.node for worker in one.workers))
        left: dict[str, list[int]] = {}
        for node in nodes:
            left[node] = [gpu for gpu in range(self._sizes.get(node, 0)) if not self._held[node][gpu]]
            self._held[node].update(dict.fromkeys(left[node], WHOLE))
            if node in self._sizes:
                self._notes.drain("a job there holds what cannot be read", node)
            else:
                self._notes.keep("on a node that is not listed", one.job.id)
        self._notes.keep(f"{one.unread}: holds all GPUs left on its nodes", one.job.id)
        gpus = {len(held) for held in left.values()}
        if len(gpus) == 1:  # a worker a node, which also has the CPU and memory that are told
            workers = [Worker(node, tuple(left[node])) for node in nodes]
            own = one.job.options[0].demand
            demand = Demand(gpus=gpus.pop(), cpu_millicores=own.cpu_millicores, memory_mib=own.memory_mib)
        else:
            workers = [Worker(node, (gpu,)) for node, held in left.items() for gpu in held]
            demand = Demand(gpus=1)
        option = made(
            Option,
            one.where,
            id=one.job.options[0].id,
            workers=len(workers),
            demand=demand,
            value=WHOLE * len(workers) * demand.gpus or 1,
            run_time_ms=one.job.options[0].run_time_ms,
        )
        job = one.job.model_copy(update={"options": (option,), "kind": "training" if demand.gpus else "cpu"})
        return replace(one, job=job, workers=tuple(workers))

    def _free(self, one: Seen, node: str, count: int, share: int, mine: set[int]) -> tuple[int, ...]:
        held = self._held[node]
        room: list[int] = []
        for gpu in range(MAX_GPUS):
            if len(room) == count:
                break
            if held[gpu] + share <= WHOLE and gpu not in mine:
                room.append(gpu)
        if len(room) < count:
            raise BadInput(f"{one.where}: with it, jobs hold more than {MAX_GPUS} GPUs of node {node!r}")
        for gpu in room:
            held[gpu] += share
        return tuple(room)


def _ranked(seen: Sequence[Seen]) -> tuple[Job, ...]:
    """Return the jobs with ranks for priorities, 0 for the lowest: managers' own go beyond what a job may state."""
    rank = {priority: i for i, priority in enumerate(sorted({one.priority for one in seen}))}
    return tuple(
        one.job.model_copy(update={"priority": rank[one.priority]}) if rank[one.priority] else one.job for one in seen
    )


def _running(one: Seen) -> Running:
    """Put a job's workers together node by node."""
    option = one.job.options[0]
    demand = option.demand
    by_node: dict[str, list[WorkerGpus]] = defaultdict(list)
    for rank, worker in enumerate(one.workers):
        by_node[worker.node].append(WorkerGpus(rank=rank, gpus=worker.gpus or ()))
    return made(
        Running,
        one.where,
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
