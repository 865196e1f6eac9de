"""
A round from the nodes and jobs that a resource manager lists: one rule for what cannot be read.

An unreadable waiting job is left out and counted by reason. An unreadable running job is kept, and everything that it
may hold counts as used, in doubt the whole node. An unreadable node is drained. The instance's note lists all of these,
and the command line prints them on standard error.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from operator import attrgetter
from types import MappingProxyType
from typing import NamedTuple, TypeVar

from placeopt.documents.faults import make_record
from placeopt.errors import BadInput
from placeopt.importers.import_notes import ImportNotes
from placeopt.importers.known_machines import with_known_machines
from placeopt.importers.stated_marks import without_gpu_memory
from placeopt.model import (
    Assignment,
    Cluster,
    Demand,
    Flavor,
    Hold,
    Instance,
    Job,
    JobOrigin,
    Option,
    Origin,
    Policy,
    Queue,
    Running,
    WorkerGpus,
)
from placeopt.model.base import MAX_GPUS, Record, one_line
from placeopt.model.costs import Weights
from placeopt.model.policy import Fragmentation

R = TypeVar("R", bound=Record)
WHOLE_GPU_MILLI = 1000
NO_GPUS = Demand(gpus=0)


class ObservedWorker(NamedTuple):
    """
    A running worker: its node and the indices of its GPUs there, None if the resource manager does not list them.

    ``starts``: First slots of its shares of GPUs with profiles.
    """

    node: str
    gpus: tuple[int, ...] | None = None
    starts: tuple[int, ...] = ()


class ObservedJob(NamedTuple):
    """
    A job as the resource manager lists it.

    ``job``: With one option, if it runs. ``workers``: Empty if the job waits. ``priority``: In the manager's own scale;
    the job of the round gets its rank among all jobs. ``where``: File and path, for messages. ``unreadable_reason``:
    Why the amounts that the job holds are unknown. Its nodes are drained, and it holds all their remaining GPUs.
    ``movable``, ``preemptible``: Of a running job; one that is preemptible may lose the workers that its gang can miss.
    """

    job: Job
    workers: tuple[ObservedWorker, ...] = ()
    started_ms: int = 0
    expected_end_ms: int | None = None
    priority: int = 0
    where: str = ""
    unreadable_reason: str | None = None
    movable: bool = False
    preemptible: bool = False


class ObservedHold(NamedTuple):
    """
    Room of a node that is held without a job; ``gpus``: how many. ``priority``: As of `ObservedJob`.

    ``jobs``: Those that it is held for.
    """

    id: str
    node: str
    gpus: int = 0
    cpu_millicores: int = 0
    memory_mib: int = 0
    resources: Mapping[str, int] = MappingProxyType({})
    priority: int | None = None
    jobs: tuple[str, ...] = ()
    from_ms: int = 0
    until_ms: int | None = None


def unreadable_job(name: str, nodes: Iterable[str], reason: str, where: str, least: Demand = NO_GPUS) -> ObservedJob:
    """Return a running job whose amounts on its nodes are unknown; ``least``: what it has on each."""
    workers = tuple(map(ObservedWorker, dict.fromkeys(nodes)))
    option = make_record(Option, where, workers=len(workers), demand=least)
    job = make_record(Job, where, id=name, kind="cpu", options=(option,))
    return ObservedJob(job, workers, where=where, unreadable_reason=reason)


def origin_of(
    where: str, name: str, own_id: str | None = None, workers: Iterable[tuple[str, str | None]] = ()
) -> JobOrigin:
    """Return what a job, and its workers by (name, id), are called where they were read."""
    known = tuple(make_record(Origin, where, name=one_line(worker), id=uid) for worker, uid in workers)
    return make_record(JobOrigin, where, name=one_line(name), id=own_id, workers=known)


def snapshot_policy(
    name: str, cluster: Cluster, queues: tuple[Queue, ...] = (), flavors: tuple[Flavor, ...] = ()
) -> Policy:
    """
    Return the policy of a snapshot: the fewest GPUs stranded on partly used nodes and domains.

    Traffic and interference cost nothing: resource managers do not report them.
    """
    weights = {"node": 1, **{domain.level: 1 for domain in cluster.domains}}
    return Policy(
        name=name,
        weights=Weights(communication=0, interference=0, fragmentation=1000),
        fragmentation=Fragmentation(level_weights=weights),
        queues=queues,
        flavors=flavors,
    )


def observed_instance(
    name: str,
    source: str,
    notes: ImportNotes,
    now_ms: int,
    cluster: Cluster,
    jobs: Sequence[ObservedJob],
    policy: Policy,
    previous: Instance | None = None,
    holds: Sequence[ObservedHold] = (),
) -> Instance:
    """
    Return the round of the observed nodes and jobs; raises `BadInput` if jobs hold more than 1024 GPUs of a node.

    ``source`` states where the data come from; it is the first line of the instance's note, and ``notes`` are the
    others. Nodes that ``notes`` lists as drained get the flag. Jobs with an ``unreadable_reason`` hold every GPU of
    their nodes that no other job holds.

    A running job stays where it is, also on a node, or on GPUs, that the cluster does not list: managers often list
    nodes and jobs at slightly different moments. Where the manager does not list a worker's GPUs, it gets the lowest
    ones with room, after all listed ones; if a node has too few, the indices go beyond the node's last. If two jobs are
    listed on one GPU beyond its whole, the one that started last keeps it, and the GPUs of the other on that node count
    as not listed, so that everything that either may hold counts as used. ``notes`` counts each of these cases.

    Of a node on which room is held, all GPUs are, or the lowest idle ones; where there are fewer, these.

    ``previous``: An earlier instance of the cluster. Jobs whose GPUs are not listed keep those that they have there,
    records that are equal are the same objects, which makes the two quick to compare, and machine types keep their ids.
    Its failed GPUs (`Instance.failed_gpus`) remain so, unless a job holds them now.
    """
    if previous is not None:
        cluster = with_known_machines(cluster, previous.cluster)
    gpus = _GpuLedger(cluster.gpus_by_node, notes)
    placed = list(jobs)
    readable = [i for i, job in enumerate(jobs) if job.unreadable_reason is None]
    with_gpus = [i for i in readable if any([worker.gpus for worker in jobs[i].workers])]  # noqa: C419 - half the time
    for i in sorted(with_gpus, key=lambda i: -jobs[i].started_ms):
        placed[i] = gpus.claim_listed(jobs[i])
    held = {} if previous is None else {record.job: record for record in previous.running}
    failed = () if previous is None else gpus.claim_failed(previous)
    for i in readable if held else ():
        placed[i] = gpus.claim_former(placed[i], held.get(placed[i].job.id))
    for i in readable:
        placed[i] = gpus.assign_missing(placed[i])
    for i, job in enumerate(jobs):
        if job.unreadable_reason is not None:
            placed[i] = gpus.claim_remaining(job, job.unreadable_reason)
    kept = (*[_hold(hold, gpus.claim_idle(hold), placed) for hold in holds], *failed)
    if drained := notes.drained:
        nodes = tuple(
            node.model_copy(update={"drained": True}) if node.id in drained else node for node in cluster.nodes
        )
        cluster = cluster.model_copy(update={"nodes": nodes})
    ranked = _with_ranked_priorities(placed)
    if not cluster.states_gpu_memory:
        ranked = tuple(map(without_gpu_memory, ranked))
    running = tuple([_running(job) for job in placed if job.workers])
    if previous is not None:
        nodes = _kept(previous.cluster.nodes, cluster.nodes, "id")
        cluster = cluster.model_copy(update={"nodes": nodes})
        ranked = _kept(previous.jobs, ranked, "id")
        running = _kept(previous.running, running, "job")
    return make_record(
        Instance,
        name,
        name=name,
        now_ms=now_ms,
        note=source[:900],
        reading=notes.records(),
        cluster=cluster,
        jobs=ranked,
        running=running,
        holds=kept,
        policy=policy,
    )


class _GpuLedger:
    """Thousandths held of each GPU of each node; finds GPUs for workers whose GPUs are not listed."""

    def __init__(self, sizes: dict[str, int], notes: ImportNotes) -> None:
        self._sizes, self._notes = sizes, notes
        self._held_milli: dict[str, dict[int, int]] = defaultdict(lambda: defaultdict(int))

    def claim_listed(self, observed: ObservedJob) -> ObservedJob:
        """Claim a job's listed GPUs; return it without those of a node on which one of them has no room left."""
        wanted = {rank: worker.gpus for rank, worker in enumerate(observed.workers) if worker.gpus}
        bare = [worker._replace(gpus=None) if worker.gpus else worker for worker in observed.workers]
        claimed = self._claim(observed._replace(workers=tuple(bare)), wanted)
        if claimed.workers != observed.workers:
            self._notes.keep("GPUs are listed as held twice; others counted as used instead", observed.job.id)
        return claimed

    def claim_former(self, observed: ObservedJob, before: Running | None) -> ObservedJob:
        """Return a job whose workers, where no GPUs are listed, have those of before: if all of a node have room."""
        if before is None:
            return observed
        former = {worker.rank: (held.node, worker.gpus) for held in before.assignments for worker in held.workers}
        wanted: dict[int, tuple[int, ...]] = {}
        for rank, worker in enumerate(observed.workers):
            node, gpus = former.get(rank, ("", ()))
            there = node == worker.node and max(gpus, default=0) < self._sizes.get(node, 0)
            if worker.gpus is None and there and len(gpus) == observed.job.options[0].demand.gpus:
                wanted[rank] = gpus
        return self._claim(observed, wanted)

    def _claim(self, observed: ObservedJob, wanted: Mapping[int, tuple[int, ...]]) -> ObservedJob:
        """Return a job whose workers of these ranks have these GPUs, but on nodes on which one of them has no room."""
        share, workers = observed.job.options[0].demand.gpu_milli, list(observed.workers)
        own = {(worker.node, gpu) for worker in workers for gpu in worker.gpus or ()}
        asked = Counter((workers[rank].node, gpu) for rank, gpus in wanted.items() for gpu in gpus)
        full = {
            node
            for (node, gpu), times in asked.items()
            if times > 1 or (node, gpu) in own or self._held_milli[node][gpu] + share > WHOLE_GPU_MILLI
        }
        for rank, gpus in wanted.items():
            node = workers[rank].node
            if node not in full:
                workers[rank] = workers[rank]._replace(gpus=gpus)
                for gpu in gpus:
                    self._held_milli[node][gpu] += share
        return observed._replace(workers=tuple(workers))

    def claim_failed(self, before: Instance) -> tuple[Hold, ...]:
        """Return the holds of before on failed GPUs, as far as these are there and no job holds them."""
        there = {
            (node, gpu): hold
            for (node, gpu), hold in before.failed_gpus.items()
            if gpu < self._sizes.get(node, 0) and not self._held_milli[node][gpu]
        }
        for node, gpu in there:
            self._held_milli[node][gpu] = WHOLE_GPU_MILLI
        return tuple(there.values())

    def assign_missing(self, observed: ObservedJob) -> ObservedJob:
        """Return a job with GPUs for every worker: the lowest with room where they are not listed."""
        demand, workers = observed.job.options[0].demand, list(observed.workers)
        own = {(worker.node, gpu) for worker in workers for gpu in worker.gpus or ()}
        for rank, (node, gpus, _) in enumerate(workers):
            held, size = self._held_milli[node], self._sizes.get(node)
            if gpus is None:
                most = WHOLE_GPU_MILLI - demand.gpu_milli
                free = (gpu for gpu in range(MAX_GPUS) if held[gpu] <= most and (node, gpu) not in own)
                gpus = tuple(islice(free, demand.gpus))
                if len(gpus) < demand.gpus:
                    raise BadInput(f"{observed.where}: with it, jobs hold more than {MAX_GPUS} GPUs of node {node!r}")
                for gpu in gpus:
                    held[gpu] += demand.gpu_milli
                    own.add((node, gpu))
                workers[rank] = ObservedWorker(node, gpus)
            if size is None:
                self._notes.keep("on a node that is not listed", observed.job.id)
            elif gpus and max(gpus) >= size:
                self._notes.keep("on more GPUs than its node has or has left", observed.job.id)
        return observed._replace(workers=tuple(workers))

    def claim_idle(self, hold: ObservedHold) -> tuple[int, ...]:
        """Return all GPUs of a node, or the lowest idle ones, as far as there are as many; they count as taken."""
        held, size = self._held_milli[hold.node], self._sizes.get(hold.node, 0)
        idle = [gpu for gpu in range(size) if not held[gpu]][: hold.gpus]
        held.update(dict.fromkeys(idle, WHOLE_GPU_MILLI))
        if hold.gpus == size:
            return tuple(range(size))
        if len(idle) < hold.gpus:
            self._notes.assume("Where more GPUs are held than are idle, the idle ones are.")
        return tuple(idle)

    def claim_remaining(self, observed: ObservedJob, reason: str) -> ObservedJob:
        """Return an unreadable job with all remaining GPUs of its nodes, which are drained."""
        remaining: dict[str, list[int]] = {}
        for node in dict.fromkeys(worker.node for worker in observed.workers):
            held = self._held_milli[node]
            remaining[node] = [gpu for gpu in range(self._sizes.get(node, 0)) if not held[gpu]]
            held.update(dict.fromkeys(remaining[node], WHOLE_GPU_MILLI))
            if node in self._sizes:
                self._notes.drain("a job there holds what cannot be read", node)
            else:
                self._notes.keep("on a node that is not listed", observed.job.id)
        self._notes.keep(f"{reason}: holds all GPUs left on its nodes", observed.job.id)
        old, demand = observed.job.options[0], Demand(gpus=1)
        numbers = {len(gpus) for gpus in remaining.values()}
        if len(numbers) == 1:  # one worker a node, with the CPU and memory that are listed
            workers = [ObservedWorker(node, tuple(gpus)) for node, gpus in remaining.items()]
            cpu, memory = old.demand.cpu_millicores, old.demand.memory_mib
            demand = Demand(gpus=numbers.pop(), cpu_millicores=cpu, memory_mib=memory)
        else:
            workers = [ObservedWorker(node, (gpu,)) for node, gpus in remaining.items() for gpu in gpus]
        option = make_record(
            Option,
            observed.where,
            id=old.id,
            workers=len(workers),
            demand=demand,
            value=WHOLE_GPU_MILLI * len(workers) * demand.gpus or 1,
            run_time_ms=old.run_time_ms,
        )
        job = observed.job.model_copy(update={"options": (option,), "kind": "training" if demand.gpus else "cpu"})
        return observed._replace(job=job, workers=tuple(workers))


def _kept(before: Iterable[R], after: Sequence[R], key: str) -> tuple[R, ...]:
    """Return the records ``after``, each of them replaced by the equal one ``before`` with the same ``key``, if any."""
    name = attrgetter(key)
    known = {name(record): record for record in before}
    return tuple(old if (old := known.get(name(record))) == record and old is not None else record for record in after)


def _with_ranked_priorities(jobs: Sequence[ObservedJob]) -> tuple[Job, ...]:
    """Return the jobs with ranks as priorities, 0 for the lowest: a manager's own may exceed the model's range."""
    rank = {priority: i for i, priority in enumerate(sorted({job.priority for job in jobs}))}
    return tuple(
        observed.job.model_copy(update={"priority": rank[observed.priority]})
        if rank[observed.priority]
        else observed.job
        for observed in jobs
    )


def _hold(observed: ObservedHold, gpus: tuple[int, ...], jobs: Sequence[ObservedJob]) -> Hold:
    """Return the record of a hold, with the rank of its priority among those of the jobs."""
    fields = {**observed._asdict(), "gpus": gpus}
    fields["for"] = fields.pop("jobs")
    if observed.priority is not None:
        fields["priority"] = len({job.priority for job in jobs if job.priority <= observed.priority}) - 1
    return make_record(Hold, observed.id, **fields)


def _running(observed: ObservedJob) -> Running:
    """Return the running placement of a job: its workers grouped by node."""
    option = observed.job.options[0]
    demand = option.demand
    by_node: dict[str, list[WorkerGpus]] = {}
    for rank, worker in enumerate(observed.workers):
        gpus = make_record(WorkerGpus, observed.where, rank=rank, gpus=worker.gpus or ())
        by_node.setdefault(worker.node, []).append(gpus)
    assignments = tuple(
        make_record(
            Assignment,
            observed.where,
            node=node,
            gpus={str(gpu): demand.gpu_milli for worker in workers for gpu in worker.gpus},
            starts={
                str(gpu): start
                for worker in observed.workers
                if worker.node == node and worker.starts
                for gpu, start in zip(worker.gpus or (), worker.starts, strict=True)
            },
            cpu_millicores=len(workers) * demand.cpu_millicores,
            memory_mib=len(workers) * demand.memory_mib,
            workers=tuple(workers),
        )
        for node, workers in by_node.items()
    )
    return make_record(
        Running,
        observed.where,
        job=observed.job.id,
        option=option.id,
        assignments=assignments,
        started_ms=observed.started_ms,
        expected_end_ms=observed.expected_end_ms,
        movable=observed.movable,
        shrinkable=observed.preemptible and option.workers_min is not None,
        preemptible=observed.preemptible,
    )
