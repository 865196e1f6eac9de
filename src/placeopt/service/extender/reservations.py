"""Which jobs of pods hold room, until when, and what of it changed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping

from placeopt.edits import AddJobs, RemoveJobs, Step, Stop
from placeopt.live_cluster.engine import Engine
from placeopt.model import Job, Plan
from placeopt.service.extender.changed import Changed
from placeopt.service.extender.decisions import Decision, nodes_of
from placeopt.service.extender.pod_jobs import PodJobs
from placeopt.service.steps import Commit, commit_of


class Reservations:
    """
    Decisions about the jobs of pods, beside a cluster that others change too.

    Every call that may have changed something is followed by `take_changed`, where a journal is kept; `restore` goes on
    from it. Parameters are those of ``Extender``.
    """

    def __init__(self, engine: Engine, resource: str, bind_within_s: float, clock: Callable[[], float]) -> None:
        self._engine, self._resource = engine, resource
        self._bind_within_s, self._clock = bind_within_s, clock
        self._lock = threading.Lock()
        self._revision = -1
        self._pods: PodJobs | None = None
        self._nodes: frozenset[str] = frozenset()
        self._waiting: dict[str, Job] = {}
        self._job_of: dict[str, str] = {}
        """Name or UID of a pod, or name of a gang -> job."""
        self._decisions: dict[str, Decision] = {}
        self._changed = Changed()

    def take_changed(self) -> Changed:
        """Return what the calls since the last time changed."""
        with self._lock:
            changed, self._changed = self._changed, Changed()
            return changed

    def restore(self, reservations: Mapping[str, str]) -> None:
        """Go on from reservations that were kept (`reservation`), by job; what else was remembered is read again."""
        with self._lock:
            self._changed, self._revision = Changed(), -1
            there = {job.id: job for job in self._engine.snapshot.jobs} if reservations else {}
            kept = {name: text for name, text in reservations.items() if name in there}
            self._changed.jobs.update(reservations.keys() - kept.keys())
            latest = self._clock() + self._bind_within_s
            self._decisions = {name: Decision.from_text(there[name], text, latest) for name, text in kept.items()}

    def reservation(self, job: str) -> str | None:
        """Return the reservation of a job as JSON; None if it has none, or holds its room by the word of others."""
        decision = self._decisions.get(job)
        return decision.to_text() if decision is not None and decision.ours else None

    @property
    def next_expiry_s(self) -> float | None:
        """When the next room is given back, on ``clock``; None: none is."""
        return min((d.expires_s for d in self._decisions.values() if d.expires_s is not None), default=None)

    def keep(self, revisions: Collection[int]) -> None:
        """Keep the room of jobs that were started at these revisions: their pods have started."""
        with self._lock:
            for decision in self._decisions.values():
                if decision.expires_s is not None and decision.revision in revisions:
                    decision.expires_s = None
                    self._changed.jobs.add(decision.job)

    def expire(self) -> tuple[str, ...]:
        """Give back the room of decisions whose time has passed without a bind; returns their jobs."""
        with self._lock:
            self._read_cluster()
            return self._expire()

    def _expire(self) -> tuple[str, ...]:
        now = self._clock()
        late = [d for d in self._decisions.values() if d.expires_s is not None and d.expires_s <= now]
        for decision in late:
            self._give_back(decision)
        return tuple(decision.job for decision in late)

    def _refresh(self) -> PodJobs:
        """Give back what is late, and return what reads pods beside the present nodes."""
        jobs = self._read_cluster()
        self._expire()
        return jobs

    def _read_cluster(self) -> PodJobs:
        """Read the cluster again if others changed it."""
        if self._engine.revision != self._revision or self._pods is None:
            now = self._engine.snapshot
            if self._pods is None or self._pods.cluster is not now.cluster:
                self._pods = PodJobs(now.cluster, self._resource)
                self._nodes = frozenset(node.id for node in now.cluster.nodes)
            running = {held.job: held for held in now.running}
            self._waiting = {job.id: job for job in now.jobs if job.id not in running}
            gone = [
                name
                for name, decision in self._decisions.items()
                if name not in running or nodes_of(running[name].assignments) != decision.nodes
            ]
            for name in gone:  # others stopped the job, or placed it again
                del self._decisions[name]
            self._changed.jobs.update(gone)
            asked = {uid: d.job for d in self._decisions.values() for uid in d.pods}
            alive = {job.id for job in now.jobs}
            self._job_of = {uid: name for uid, name in self._job_of.items() if name in alive} | asked
            for job in now.jobs:
                self._index(job)
                if job.id in running and job.id not in self._decisions:  # by another call, or before a restart
                    held = running[job.id]
                    decision = Decision.of(job, held.assignments, None)
                    self._decisions[job.id] = decision
            self._revision = self._engine.revision
        return self._pods

    def _index(self, job: Job) -> None:
        self._job_of[job.id] = job.id
        for name in () if job.origin is None else job.origin.names:
            self._job_of[name] = job.id

    def _add(self, job: Job, remove: tuple[str, ...] = ()) -> None:
        """Add a job; ``remove``: the waiting one of the same name, in whose place it comes."""
        if remove:
            self._edit(RemoveJobs(do="remove_jobs", jobs=remove), job.id)
        self._edit(AddJobs(do="add_jobs", jobs=(job,)), job.id)
        self._job_of = {name: of for name, of in self._job_of.items() if of not in remove}
        self._waiting[job.id] = job
        self._index(job)

    def _start(self, job: Job, plan: Plan, expires_s: float | None) -> Decision:
        """Start a job, and keep its room until then; None: for good."""
        step = commit_of(self._engine, plan, self._engine.commit(plan), {})
        self._note(step, job.id)
        decision = Decision.of(job, step.starts[0].assignments, expires_s)
        decision.ours, decision.revision = True, self._revision
        self._decisions[job.id] = decision
        del self._waiting[job.id]
        return decision

    def _give_back(self, decision: Decision) -> None:
        self._edit(Stop(do="stop", jobs=(decision.job,)), decision.job)
        self._changed.record_outcome(decision.revision, "failed", "the room was given back: no pod was bound there")
        del self._decisions[decision.job]
        self._waiting[decision.job] = decision.record

    def _edit(self, step: Step, job: str) -> None:
        self._engine.edit((step,))
        self._note(step, job)

    def _note(self, step: Step | Commit, job: str) -> None:
        """Keep a step that was carried out."""
        self._revision = self._engine.revision
        self._changed.steps.append(step)
        self._changed.jobs.add(job)
