"""The record of a live cluster: jobs, nodes and running placements now, and the snapshot made of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from placeopt.check import Ledger
from placeopt.edits import unread_in
from placeopt.edits.gpus import without_gone_gpus
from placeopt.edits.records import changed
from placeopt.errors import Unsupported
from placeopt.live_cluster.history import History
from placeopt.model import Cluster, Hold, Instance, Job, Node, Policy, ReadingNote, Running
from placeopt.model import Placement as PlacementRecord
from placeopt.model.base import trusted
from placeopt.problem.grants import Record, granted, has_limit
from placeopt.problem.trees import with_members

Ids = bool | Collection[str]
"""All jobs that a plan starts (true), none of them, or some by id."""


def refuse_groups(job: Job) -> None:
    """Raise ``Unsupported`` for what an engine's parts do not support: groups and preferred levels."""
    if any(option.is_tree for option in job.options):
        raise Unsupported(
            f"job {job.id!r}: a cluster that stays takes no groups of workers; solve whole rounds, or "
            "load the round that 'placeopt.live_cluster.without_groups' makes"
        )


def running_record(placement: PlacementRecord, started_ms: int, flags: tuple[bool, ...]) -> Running:
    """Return the record of a job that runs; ``flags``: whether it may be moved, shrunk, preempted."""
    movable, shrinkable, preemptible = flags
    fields = {
        "job": placement.job,
        "option": placement.option,
        "assignments": placement.assignments,
        "reached": placement.reached,
        "started_ms": started_ms,
        "expected_end_ms": None,
        "movable": movable,
        "shrinkable": shrinkable,
        "preemptible": preemptible,
        "protected_until_ms": None,
    }
    return trusted(Running, fields)


class ClusterRecord:
    """
    The records of a cluster, changed one revision at a time. Refuses what an instance would refuse.

    A plan for some jobs states ``name``, ``revision`` and ``digest`` (None: not known without reading everything) of
    it.
    """

    def __init__(self, instance: Instance, policy: Policy, history: History | None = None) -> None:
        """``history``: That of the cluster that this one goes on from."""
        self.history = history or History(instance.revision)
        self._loaded = instance
        self._snapshot = instance
        self.cluster = instance.cluster
        """The cluster as it is; the same object until nodes change."""
        self._policy = policy
        self.has_limits = False
        """Whether any job so far may be granted more than its request."""
        self._unread: tuple[str, ...] | None = None
        self.look_for_limits(instance.jobs)
        for job in instance.jobs:
            refuse_groups(job)
        self.ledger = Ledger(instance, policy)
        self.name, self.now_ms = instance.name, instance.now_ms
        self.digest: str | None = None
        self.queues = {queue.id for queue in instance.policy.queues}, {queue.id for queue in policy.queues}
        self.levels = {"node"} | {domain.level for domain in instance.cluster.domains}

    @property
    def revision(self) -> int:
        """Number of the present state."""
        return self.history.revision

    @property
    def jobs(self) -> dict[str, Job]:
        """All jobs by id, in their order."""
        return self.ledger.directory.jobs

    @property
    def nodes(self) -> dict[str, Node]:
        """All nodes by id, in their order."""
        return self.ledger.directory.nodes

    @property
    def running(self) -> dict[str, Running]:
        """What runs, by id of the job."""
        return self.ledger.directory.running

    @property
    def holds(self) -> tuple[Hold, ...]:
        """Room that is held without a job."""
        return self._loaded.holds

    @property
    def reading(self) -> tuple[ReadingNote, ...]:
        """What an importer left out, kept in doubt, drained or assumed."""
        return self._loaded.reading

    @property
    def unread(self) -> tuple[str, ...]:
        """What was not read when its notes came, and could change an answer."""
        if self._unread is None:
            self._unread = unread_in(self.snapshot(), waiting=False).names
        return self._unread

    def read(self, reading: tuple[ReadingNote, ...]) -> None:
        """Replace the notes of the reading."""
        self._loaded, self._unread = changed(self._loaded, reading=reading), None

    @property
    def has_timed_holds(self) -> bool:
        """Whether any hold begins or ends at a time."""
        return any(hold.from_ms or hold.until_ms is not None for hold in self.holds)

    @property
    def holds_for_some(self) -> set[tuple[object, int]]:
        """What decides whether a job may take of holds: classes of jobs stay as they are while it does."""
        now, kinds = self.now_ms, self.bare().hold_kinds
        return {
            (kind, now if hold.from_ms > now else -1)
            for kind, hold in kinds.items()
            if not hold.counts_against_all(now)
        }

    def hold(self, holds: tuple[Hold, ...] | None, now_ms: int) -> bool:
        """
        Hold this room, at this time, and return whether the room that is held changes; None: as before.

        Failed GPUs that are no longer there are not held.
        """
        before = self.bare()
        self.now_ms = now_ms
        after = without_gone_gpus(changed(before, holds=self.holds if holds is None else holds, now_ms=now_ms))
        if after.holds != self.holds:
            self._loaded = changed(self._loaded, holds=after.holds)
        self.ledger.hold(after.holds_now, now_ms)
        return after.holds_now != before.holds_now

    def rename_workers(self, job_id: str, ranks: Sequence[int]) -> None:
        """Let the workers of these former ranks be the first of a job that shrank, in this order, for their origins."""
        job = self.jobs[job_id]
        if job.origin is not None and job.origin.workers:
            there = job.origin.workers
            kept = [there[rank] for rank in ranks if rank < len(there)]
            gone = [worker for rank, worker in enumerate(there) if rank not in ranks]
            origin = job.origin.model_copy(update={"workers": (*kept, *gone)})
            self.jobs[job_id] = job.model_copy(update={"origin": origin})

    def put_nodes(self, nodes: Mapping[str, Node | None]) -> None:
        """Add nodes, replace those of the same id, and take those away (None) on which nothing runs."""
        for name, node in nodes.items():
            if node is not None:
                self.ledger.put_node(node)
            else:
                self.ledger.remove_node(name)
        if nodes:
            fields = {**dict(self._loaded.cluster), "nodes": tuple(self.nodes.values())}
            self.cluster = Cluster.model_construct(**fields)

    def bare(self, jobs: tuple[Job, ...] = (), running: Sequence[Running] = ()) -> Instance:
        """Return the instance with some of its jobs; without any, it is what the hardware is compiled from."""
        now = {"cluster": self.cluster, "revision": self.revision, "now_ms": self.now_ms}
        fields = {**dict(self._loaded), **now, "jobs": jobs, "running": tuple(running)}
        return Instance.model_construct(**fields)

    def snapshot(self) -> Instance:
        """Return the instance as it is; the same object until something changes."""
        # Running placements state the shares granted now; the records themselves hold requests alone.
        if self.history.is_open or self._snapshot.revision != self.revision:
            running = self.granted_anew(tuple(self.running.values()))
            self._snapshot = self.bare(tuple(self.jobs.values()), running)
        return self._snapshot

    def look_for_limits(self, jobs: Iterable[Job]) -> None:
        """Note whether any of ``jobs`` may be granted more than its request."""
        self.has_limits |= self._policy.share_mode == "fraction" and any(map(has_limit, jobs))

    def granted(self, placements: Sequence[Record]) -> Sequence[Record]:
        """Return placements of waiting jobs with the shares granted beside each other and the jobs on their nodes."""
        if not self.has_limits:
            return placements
        nodes = dict.fromkeys(a.node for placement in placements for a in placement.assignments)
        others = dict.fromkeys(job for node in nodes for job in self.ledger.on_node(node))
        return granted(placements, self.jobs, self._policy.share_mode, [self.running[job] for job in others])

    def granted_anew(self, placements: Sequence[Record]) -> Sequence[Record]:
        """Return placements of all jobs that run or start, with the shares granted beside each other."""
        return granted(placements, self.jobs, self._policy.share_mode) if self.has_limits else placements


def without_groups(instance: Instance) -> tuple[Instance, tuple[str, ...]]:
    """
    Return a round whose jobs an engine keeps between rounds, and the names of those that it leaves out.

    Parameters
    ----------
    instance
        Any round.

    Returns
    -------
    tuple
        The round without waiting workers of jobs with groups or preferred levels; what runs of such a job is a job for
        each leaf, which stays where it is. And the jobs of which workers wait.
    """
    flat, trees = with_members(instance)
    if not trees:
        return instance, ()
    waiting = {flat.jobs[member].id for tree in trees for member in tree.members if member not in tree.runs}
    left = {tree.job for tree in trees}
    plain = {job.id: job for job in instance.jobs if job.id not in left}
    jobs = tuple(plain.get(job.id, job) for job in flat.jobs if job.id not in waiting)
    kept = flat.model_copy(update={"jobs": jobs, "cluster": instance.cluster})  # with blocks, as for jobs that come
    return kept, tuple(tree.job for tree in trees if len(tree.runs) < len(tree.members))
