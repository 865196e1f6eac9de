"""The record of a live cluster: jobs, nodes and running placements now, what changed when, and the snapshot."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from placeopt.check import Ledger
from placeopt.edits import unread_in
from placeopt.edits.gpus import without_gone_gpus
from placeopt.edits.records import changed
from placeopt.errors import BadInput, StaleSnapshot, Unsupported
from placeopt.model import Cluster, Hold, Instance, Job, Node, Policy, ReadingNote, Running
from placeopt.model import Placement as PlacementRecord
from placeopt.model.base import trusted
from placeopt.problem.grants import Record, granted, has_limit

Ids = bool | Collection[str]
"""All jobs that a plan starts (true), none of them, or some by id."""

MOST_CHANGES_LISTED = 5
"""Changes that the message of ``StaleSnapshot`` describes; it has the ids of all."""

MOST_CHANGES_KEPT = 10_000
"""Changes that are kept to say what made a plan stale; of older ones only the number is known."""


@dataclass(frozen=True)
class RecordChange:
    """What one revision changed."""

    revision: int
    text: str
    jobs: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    started: tuple[str, ...] = ()
    stopped: tuple[str, ...] = ()


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

    def __init__(self, instance: Instance, policy: Policy) -> None:
        self._loaded = instance
        self._snapshot: Instance | None = instance
        self._cluster: Cluster | None = instance.cluster
        self._policy = policy
        self._changes: deque[RecordChange] = deque(maxlen=MOST_CHANGES_KEPT)
        self.has_limits = False
        """Whether any job so far may be granted more than its request."""
        self._unread: tuple[str, ...] | None = None
        self.look_for_limits(instance.jobs)
        for job in instance.jobs:
            refuse_groups(job)
        self.ledger = Ledger(instance, policy)
        self.name, self.revision, self.now_ms = instance.name, instance.revision, instance.now_ms
        self._first_revision = instance.revision
        self.digest: str | None = None
        self.queues = {queue.id for queue in instance.policy.queues}, {queue.id for queue in policy.queues}
        self.levels = {"node"} | {domain.level for domain in instance.cluster.domains}

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
        self._loaded, self._snapshot, self._unread = changed(self._loaded, reading=reading), None, None

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
            self._loaded, self._snapshot = changed(self._loaded, holds=after.holds), None
        self.ledger.hold(after.holds_now, now_ms)
        return after.holds_now != before.holds_now

    def note(
        self,
        text: str,
        jobs: Iterable[str] = (),
        nodes: Iterable[str] = (),
        started: Iterable[str] = (),
        stopped: Iterable[str] = (),
    ) -> None:
        """Begin the next revision; ``jobs`` are those that changed in another way than to start or stop."""
        begun, ended = tuple(started), tuple(stopped)
        changed = (*begun, *jobs, *ended)
        self.revision += 1
        self._changes.append(RecordChange(self.revision, text, changed, tuple(nodes), begun, ended))
        self._snapshot = None

    def rename_workers(self, job_id: str, ranks: Sequence[int]) -> None:
        """Let the workers of these former ranks be the first of a job that shrank, in this order, for their origins."""
        job = self.jobs[job_id]
        if job.origin is not None and job.origin.workers:
            there = job.origin.workers
            kept = [there[rank] for rank in ranks if rank < len(there)]
            gone = [worker for rank, worker in enumerate(there) if rank not in ranks]
            origin = job.origin.model_copy(update={"workers": (*kept, *gone)})
            self.jobs[job_id] = job.model_copy(update={"origin": origin})

    def ran_at(self, planned: int) -> dict[str, bool]:
        """Return whether each job that was started, was stopped or ended since a revision of this cluster ran then."""
        self.refuse_foreign(planned)
        if self._changes and self._changes[0].revision > planned + 1:
            raise StaleSnapshot(
                planned,
                self.revision,
                (),
                (),
                f"more than {MOST_CHANGES_KEPT} changes, so it is not known what ran then",
            )
        ran: dict[str, bool] = {}
        for change in self._since(planned):  # what happened to a job first tells
            for job in change.started:
                ran.setdefault(job, False)
            for job in change.stopped:
                ran.setdefault(job, True)
        return ran

    def _since(self, revision: int) -> list[RecordChange]:
        return [change for change in self._changes if change.revision > revision]

    def stopped_since(self, revision: int) -> tuple[str, ...]:
        """Return the jobs that ran, were stopped after a revision and wait now, as far as the changes are kept."""
        stopped = (job for change in self._since(revision) for job in change.stopped)
        return tuple(job for job in dict.fromkeys(stopped) if job in self.jobs and job not in self.running)

    def refuse_foreign(self, planned: int) -> None:
        """Raise ``BadInput`` if this cluster has never been at revision ``planned``."""
        if not self._first_revision <= planned <= self.revision:
            raise BadInput(
                f"plan: instance.revision: {planned}; this cluster was loaded at {self._first_revision} and is at "
                f"{self.revision}, so the plan is of another"
            )

    def change_running(self, job_id: str, fields: Mapping[str, object]) -> None:
        """Change fields of a running job that do not say where it runs."""
        self.running[job_id] = self.running[job_id].model_copy(update=dict(fields))

    def continue_history(self, former: ClusterRecord) -> None:
        """Take over the revisions of a cluster that this one goes on from."""
        self._first_revision = former._first_revision
        self._changes.extend(change for change in former._changes if change.revision <= self.revision)

    def join_changes(self, since: int, words: str | None) -> None:
        """Make one revision of all those after revision ``since``; None: described by the first of them."""
        joined = self._since(since)
        if not joined:
            return
        for _ in joined:
            self._changes.pop()
        stopped = dict.fromkeys(job for change in joined for job in change.stopped)
        started = dict.fromkeys(job for change in joined for job in change.started if job not in stopped)
        jobs = dict.fromkeys(job for change in joined for job in change.jobs)
        nodes = dict.fromkeys(node for change in joined for node in change.nodes)
        more = f" and {len(joined) - 1} other changes" if len(joined) > 1 else ""
        text = words or joined[0].text + more
        self.revision = since + 1
        self._snapshot = None
        self._changes.append(
            RecordChange(self.revision, text, tuple(jobs), tuple(nodes), tuple(started), tuple(stopped))
        )

    def nodes_changed(self) -> None:
        """Note that the records of nodes are not those of the last snapshot."""
        self._cluster = None

    def cluster(self) -> Cluster:
        """Return the cluster as it is; the same object until nodes change."""
        if self._cluster is None:
            fields = dict(self._loaded.cluster)
            self._cluster = Cluster.model_construct(**{**fields, "nodes": tuple(self.nodes.values())})
        return self._cluster

    def _now(self, jobs: tuple[Job, ...] = (), running: Sequence[Running] = ()) -> Instance:
        """Return the instance with some of its jobs."""
        now = {"cluster": self.cluster(), "revision": self.revision, "now_ms": self.now_ms}
        fields = {**dict(self._loaded), **now, "jobs": jobs, "running": tuple(running)}
        return Instance.model_construct(**fields)

    def bare(self) -> Instance:
        """Return the instance without its jobs: what the hardware is compiled from."""
        return self._now()

    def waiting(self, ids: Iterable[str]) -> Instance:
        """Return the instance with some waiting jobs and nothing running."""
        return self._now(tuple(map(self.jobs.__getitem__, ids)))

    def snapshot(self) -> Instance:
        """Return the instance as it is; the same object until something changes."""
        # Running placements state the shares granted now; the records themselves hold requests alone.
        if self._snapshot is None:
            running = self.granted_anew(tuple(self.running.values()))
            self._snapshot = self._now(tuple(self.jobs.values()), running)
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

    def refuse_stale(self, planned: int) -> None:
        """
        Raise ``StaleSnapshot``, which names what changed since, unless ``planned`` is the present revision.

        Raises ``BadInput`` if there has been no such revision.
        """
        self.refuse_foreign(planned)
        if planned == self.revision:
            return
        since = self._since(planned)
        forgotten = self.revision - planned - len(since)
        texts = [change.text for change in since[-MOST_CHANGES_LISTED:]]
        earlier = forgotten + len(since) - len(texts)
        if earlier:
            texts.insert(0, f"{earlier} earlier changes")
        jobs = tuple(dict.fromkeys(job for change in since for job in change.jobs))
        nodes = tuple(dict.fromkeys(node for change in since for node in change.nodes))
        raise StaleSnapshot(planned, self.revision, jobs, nodes, ", ".join(texts))
