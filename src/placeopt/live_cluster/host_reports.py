"""What the host system reports of a live cluster: jobs and nodes that come, change, go and fail."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pydantic import ValidationError

from placeopt.arguments import checked, expect, listed, mapped
from placeopt.check.case import names
from placeopt.errors import BadInput
from placeopt.live_cluster.changes import ClusterChanges, held_gpus
from placeopt.live_cluster.cluster_record import NodeChange
from placeopt.live_cluster.failure_reports import FailureReports
from placeopt.model import Instance, Job, Policy, Running
from placeopt.model.base import MAX_MS


class HostReports(FailureReports):
    """
    Calls by which the caller of an engine tells what happened outside; ``Engine`` has each of them.

    Each begins one revision, or raises and changes nothing.
    """

    def update(
        self,
        *,
        add_jobs: Iterable[Job] = (),
        remove_jobs: Iterable[str] = (),
        nodes: Mapping[str, NodeChange] | None = None,
        now_ms: int | None = None,
        expected_end_ms: Mapping[str, int] | None = None,
        flags: Mapping[str, Mapping[str, bool]] | None = None,
        priority: Mapping[str, int] | None = None,
    ) -> None:
        """
        Change the cluster: one new revision, or none if nothing is given. All of it happens, or nothing and an error.

        Parameters
        ----------
        add_jobs
            Waiting jobs that come, in their order. Their ids are new, or stand in ``remove_jobs`` too.
        remove_jobs
            Ids of waiting jobs that go.
        nodes
            By id: a ``Node`` to add, last, or to replace the present one; ``"drain"`` or ``"undrain"``;
            None to remove it, once nothing runs there. What runs on a node stays there; limits that it exceeds
            after the change stand (``Plan.standing``).
        now_ms
            What time it is now; jobs that are committed start then.
        expected_end_ms
            By id of a running job: when it is now expected to end, for look-ahead.
        flags
            By id of a running job: which of ``movable``, ``shrinkable`` and ``preemptible`` it is from now on.
        priority
            By id of a job, waiting or running: its new priority.

        Raises
        ------
        BadInput
            If ids are unknown or taken, a running job is removed (``release`` it), a node goes while jobs run on it or
            name it, what runs contradicts itself, or a job with an expected end or flags does not run.
        Unsupported
            If the jobs can be worth more than 2^53 together.
        """
        listed("add_jobs", add_jobs, "records")
        listed("remove_jobs", remove_jobs, "ids")
        maps = {"nodes": nodes, "expected_end_ms": expected_end_ms, "flags": flags, "priority": priority}
        for name, given in maps.items():
            mapped(name, {} if given is None else given)
        if now_ms is not None:
            expect("now_ms", now_ms, int, "a whole number")
        if now_ms is not None and not (add_jobs or remove_jobs or any(maps.values())):
            self._update_time(now_ms)
            return
        add, remove = tuple(add_jobs), (remove_jobs,) if isinstance(remove_jobs, str) else tuple(remove_jobs)
        self._update(add, remove, nodes or {}, now_ms, expected_end_ms or {}, flags or {}, priority or {})

    def _update_time(self, now_ms: int) -> None:
        """Let time go on, and nothing else change: schedulers do that before most decisions."""
        self._refuse_earlier(now_ms)
        with self._state.kept():
            self._state.record.note("time went on")
            self._state.set_time(now_ms)
            self._state.number_classes_anew()

    def _refuse_earlier(self, now_ms: int) -> None:
        if now_ms < self._state.record.now_ms:
            raise BadInput(f"now_ms: {now_ms}, but it is {self._state.record.now_ms} already; time goes forward")

    def _update(
        self,
        add: tuple[Job, ...],
        remove: tuple[str, ...],
        nodes: Mapping[str, NodeChange],
        now_ms: int | None,
        expected_end_ms: Mapping[str, int],
        flags: Mapping[str, Mapping[str, bool]],
        priority: Mapping[str, int],
    ) -> None:
        """Change nodes, then remove waiting jobs, then add some."""
        record = self._state.record
        records = record.check_nodes(nodes)
        record.check_jobs(add, remove)
        if now_ms is not None:
            self._refuse_earlier(now_ms)
        for job_id, end in expected_end_ms.items():
            if job_id not in record.running:
                raise BadInput(f"expected_end_ms: job {job_id!r} does not run")
            if type(end) is not int or not 0 <= end <= MAX_MS:
                raise BadInput(f"expected_end_ms: {end!r} for job {job_id!r}, expected ms from 0 to {MAX_MS}")
        running = record.running
        ends = {job: end for job, end in expected_end_ms.items() if running[job].expected_end_ms != end}
        flags, priority = record.new_flags(flags), record.new_priorities(priority, frozenset(remove))
        if not (add or remove or records or ends or flags or priority or now_ms is not None):
            return
        self._state.change(add, remove, records)
        self._state.prioritise(priority)
        record.expect(ends)
        record.allow(flags)
        changes = [
            *([f"{names([job.id for job in add])} came"] if add else []),
            *([f"{names(list(remove))} went"] if remove else []),
            *([_nodes_text(list(records))] if records else []),
            *([f"{names(list(ends))} expected to end at another time"] if ends else []),
            *([f"flags of {names(list(flags))} changed"] if flags else []),
            *([f"priority of {names(list(priority))} changed"] if priority else []),
        ]
        changed = dict.fromkeys([*(job.id for job in add), *remove, *ends, *flags, *priority])
        record.note(" and ".join(changes) or "time went on", changed, records)
        self._state.set_time(record.now_ms if now_ms is None else now_ms)
        self._state.number_classes_anew()
        if records:
            self._state.drop_gone_gpus()

    @checked
    def set_policy(self, policy: Policy) -> None:
        """
        Go on under another policy, which the snapshot states from now on. Everything is compiled again, as in ``load``.

        The policy that the engine was made with, if any, remains that of other instances and of later loads.

        Parameters
        ----------
        policy
            The policy of the loaded cluster from now on.

        Raises
        ------
        BadInput
            If a job is of a queue that the policy lacks, or what runs contradicts itself under it.
        Unsupported
            If the jobs can be worth more than 2^53 together.
        """
        state = self._state
        before = state.policy.name
        with state.kept():
            try:
                fields = {name: getattr(state.snapshot, name) for name in Instance.model_fields}
                now = Instance(**{**fields, "policy": policy})
            except ValidationError as error:
                raise _refused(error) from None
            state.recompile(now, policy)
            state.record.note(f"policy {policy.name!r} took the place of {before!r}")

    @checked
    def apply(self, changes: ClusterChanges) -> None:
        """
        Carry out the differences of two readings: jobs end, come, go and start elsewhere, nodes change. One revision.

        Parameters
        ----------
        changes
            Of ``changes_between(before, after)``, where ``before`` is this cluster's snapshot, or a reading that it
            agrees with. Afterwards the cluster is that of ``after``, but for the order of jobs and nodes, and for what
            the differences leave out. Time does not go back.

        Raises
        ------
        BadInput
            If they ask for a load (``reload``), or are differences from another state: unknown jobs and nodes, jobs
            that do not run or run already.
        Unsupported
            If the jobs can be worth more than 2^53 together.
        """
        if changes.reload:
            raise BadInput(f"changes: load the later reading as a whole: {changes.reload[0]}")
        if not changes and changes.now_ms <= self._state.record.now_ms:
            return
        failed = self._state.snapshot.failed_gpus
        with self._state.as_one_revision():
            for node, gpu in failed.keys() & held_gpus(changes.adopt):
                self.repair_gpu(node, gpu)
            for job_id in changes.release:
                self.release(job_id)
            self.update(
                add_jobs=changes.add_jobs,
                remove_jobs=changes.remove_jobs,
                nodes=changes.nodes,
                now_ms=max(changes.now_ms, self._state.record.now_ms),
                expected_end_ms=changes.expected_end_ms,
                flags=changes.flags,
                priority=changes.priorities,
            )
            for held in changes.adopt:
                self._start(held)

    @checked
    def release(self, job: str) -> Job:
        """
        Remove a running job, because it is done or has failed, and return its record.

        Parameters
        ----------
        job
            Id of the job.

        Returns
        -------
        Job
            The record of the job, which the cluster no longer has.

        Raises
        ------
        BadInput
            If no such job runs.
        """
        if job not in self._state.record.running:
            raise BadInput(f"release: job {job!r} does not run")
        held = self._state.record.running[job]
        record = self._state.release(job)
        self._state.record.note(f"job {job!r} ended", stopped=[job])
        self._state.drop_stand_ins([held])
        return record

    @checked
    def undo(self, job: str) -> None:
        """
        Let a running job wait again, because its start failed or the host stopped it.

        Parameters
        ----------
        job
            Id of the job. Its record, and its place in the order of jobs, are as before the start.

        Raises
        ------
        BadInput
            If no such job runs.
        """
        if job not in self._state.record.running:
            raise BadInput(f"undo: job {job!r} does not run")
        held = self._state.record.running[job]
        self._state.stop(job)
        self._state.record.note(f"job {job!r} waits again", stopped=[job])
        self._state.drop_stand_ins([held])

    def _start(self, held: Running) -> None:
        """Count a waiting job as running where another system started it, whatever keeps jobs from starting there."""
        record = self._state.record
        record.check_place(held)
        self._state.adopt(held, None)
        record.note(f"{names([held.job])} started elsewhere", started=[held.job])


def _refused(error: ValidationError) -> BadInput:
    """Return the first thing that a record is refused for."""
    first = error.errors(include_url=False)[0]
    place = ".".join(map(str, first["loc"]))
    return BadInput(f"{place}: " * bool(place) + first["msg"].removeprefix("Value error, "))


def _nodes_text(ids: list[str]) -> str:
    """Say which nodes changed."""
    shown = ", ".join(repr(name) for name in ids[:5])
    more = f" and {len(ids) - 5} more" if len(ids) > 5 else ""
    return f"node{'s' * (len(ids) > 1)} {shown}{more} changed"
