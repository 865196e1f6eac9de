"""What the host system reports of a live cluster: jobs and nodes that come, change and go, as differences."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import nullcontext

from placeopt.arguments import checked
from placeopt.check.case import names
from placeopt.errors import BadInput
from placeopt.live_cluster.change_checks import (
    check_jobs,
    check_nodes,
    check_places,
    new_fields,
    new_holds,
    new_priorities,
)
from placeopt.live_cluster.changes import ClusterChanges, held_gpus
from placeopt.live_cluster.cluster_state import ClusterState
from placeopt.model import Hold, Node, Running


class HostReports:
    """Differences carried out on a cluster: each call begins one revision, or raises and changes nothing."""

    def __init__(self, state: ClusterState) -> None:
        self._state = state

    @checked
    def apply(self, changes: ClusterChanges) -> None:
        """
        Carry out differences: jobs end, come, go and start elsewhere, nodes change. One revision; none without any.

        Parameters
        ----------
        changes
            Of ``changes_between(before, after)``, where ``before`` is this cluster's snapshot, or a reading that it
            agrees with; or made by the caller. Afterwards the cluster is that of ``after``, but for the order of jobs
            and nodes, and for what the differences leave out. Time does not go back. What runs on a node that changes
            stays there; limits that it exceeds after the change stand (``Plan.standing``). A node goes once nothing
            runs there.

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
        with self._state.as_one_revision() if changes.adopt else nullcontext():
            if changes.adopt:
                failed = self._state.snapshot.failed_gpus
                holds = self._state.record.holds if changes.holds is None else changes.holds
                repaired = {failed[gpu].id for gpu in failed.keys() & held_gpus(changes.adopt)}
                if repaired:
                    left = tuple(hold for hold in holds if hold.id not in repaired)
                    changes = changes.model_copy(update={"holds": left})
            self._change(changes)
            self._adopt(changes.adopt)

    def _change(self, changes: ClusterChanges, stop: Collection[str] = ()) -> None:
        """Carry out differences but for ``adopt``; jobs of ``stop`` wait again."""
        state, record = self._state, self._state.record
        ended, stopped = dict.fromkeys(changes.release), dict.fromkeys(stop)
        halted = (*ended, *stopped)
        for job_id in halted:
            if job_id not in record.running:
                raise BadInput(f"job {job_id!r} does not run")
        remove = (*changes.remove_jobs, *ended)
        check_nodes(record, changes.nodes, halted)
        held, holds = new_holds(record, changes.holds)
        check_jobs(record, changes.add_jobs, remove, ended)
        fields = new_fields(record, changes, halted)
        priority = new_priorities(record, changes.priorities, frozenset(remove))
        come = [job.id for job in changes.add_jobs]
        kinds = (
            (ended, "ended"),
            (stopped, "stopped"),
            (come, "came"),
            (changes.remove_jobs, "went"),
            (fields, "got other flags or another expected end"),
            (priority, "got another priority"),
        )
        told = [f"{names(jobs)} {did}" for jobs, did in kinds if jobs]
        told += _text("node", record.nodes, changes.nodes) + _text("hold", held, holds)
        notes = record.reading if changes.reading is None else changes.reading
        told += ["notes of the reading changed"] if notes != record.reading else []
        if not told and changes.now_ms <= record.now_ms:
            return
        where = [hold.node for name, one in holds.items() for hold in (held.get(name), one) if hold]
        gone = [record.running[job_id] for job_id in halted]
        state.change(
            add=changes.add_jobs,
            remove=remove,
            stop=halted,
            nodes=changes.nodes,
            holds=changes.holds if holds else None,
            now_ms=changes.now_ms,
        )
        state.prioritise(priority)
        for job_id, new in fields.items():
            record.change_running(job_id, new)
        if notes is not record.reading:
            record.read(notes)
        changed = dict.fromkeys([*come, *changes.remove_jobs, *fields, *priority])
        record.note(" and ".join(told) or "time went on", changed, (*changes.nodes, *where), stopped=halted)
        state.compile_if_stale(gone)

    def _adopt(self, running: Collection[Running]) -> None:
        """Count waiting jobs as running where another system started them, whatever keeps jobs from starting there."""
        if running:
            check_places(self._state.record, running)
            self._state.adopt(running)
            begun = [held.job for held in running]
            self._state.record.note(f"{names(begun)} started elsewhere", started=begun)


def _text(kind: str, before: Mapping[str, Node | Hold], after: Mapping[str, Node | Hold | None]) -> list[str]:
    """Say which nodes or holds came, changed and went; ``after``: None of those that went, else the new record."""
    did: dict[str, list[str]] = {}
    for name, record in after.items():
        did.setdefault("went" if record is None else "changed" if name in before else "came", []).append(name)
    return [f"{names(ids, kind)} {what}" for what, ids in did.items()]
