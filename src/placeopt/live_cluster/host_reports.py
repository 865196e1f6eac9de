"""What the host system reports of a live cluster: jobs and nodes that come, change and go, as differences."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

from placeopt.arguments import checked, expect, listed, mapped
from placeopt.check.case import names
from placeopt.errors import BadInput
from placeopt.live_cluster.change_checks import (
    check_jobs,
    check_nodes,
    check_place,
    new_ends,
    new_flags,
    new_holds,
    new_priorities,
)
from placeopt.live_cluster.changes import ClusterChanges, held_gpus
from placeopt.live_cluster.cluster_state import ClusterState
from placeopt.model import Hold, Job, Node, ReadingNote, Running

LISTS = {"release": str, "remove_jobs": str, "add_jobs": Job, "adopt": Running, "holds": Hold, "reading": ReadingNote}
NOTHING = vars(ClusterChanges())


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
        for name, given in vars(changes).items():
            if given != NOTHING[name]:
                _refuse_odd(name, given)
        if changes.reload:
            raise BadInput(f"changes: load the later reading as a whole: {changes.reload[0]}")
        if not changes.adopt:
            self._change(changes)
            return
        state = self._state
        now = state.snapshot
        with state.as_one_revision():
            repaired = {now.failed_gpus[gpu].id for gpu in now.failed_gpus.keys() & held_gpus(changes.adopt)}
            holds = now.holds if changes.holds is None else changes.holds
            left = tuple(hold for hold in holds if hold.id not in repaired)
            self._change(replace(changes, holds=left) if repaired else changes)
            for held in changes.adopt:
                self._start(held)

    def _change(self, changes: ClusterChanges, stop: Collection[str] = ()) -> None:
        """Carry out differences in which nothing starts; jobs of ``stop`` wait again."""
        state, record = self._state, self._state.record
        running = record.running
        ended, stopped = dict.fromkeys(changes.release), dict.fromkeys(stop)
        for job_id in (*ended, *stopped):
            if job_id not in running:
                raise BadInput(f"job {job_id!r} does not run")
        halted = (*ended, *stopped)
        add, remove = tuple(changes.add_jobs), (*changes.remove_jobs, *ended)
        records = check_nodes(record, changes.nodes, halted)
        held, holds = new_holds(record, changes.holds)
        check_jobs(record, add, remove, ended)
        ends = new_ends(record, changes.expected_end_ms, halted)
        flags = new_flags(record, changes.flags, halted)
        priority = new_priorities(record, changes.priorities, frozenset(remove))
        come = [job.id for job in add]
        kinds = (
            (ended, "ended"),
            (stopped, "stopped"),
            (come, "came"),
            (changes.remove_jobs, "went"),
            (ends, "expected to end at another time"),
            (flags, "got other flags"),
            (priority, "got another priority"),
        )
        told = [f"{names(list(jobs))} {did}" for jobs, did in kinds if jobs]
        told += _text("node", record.nodes, records) if records else []
        told += _text("hold", held, holds) if holds else []
        notes = record.reading if changes.reading is None else tuple(changes.reading)
        told += ["notes of the reading changed"] if notes != record.reading else []
        if not told and changes.now_ms <= record.now_ms:
            return
        where = [hold.node for name, one in holds.items() for hold in (held.get(name), one) if hold]
        gone = [running[job_id] for job_id in halted]
        state.change(add, remove, records, halted, tuple(changes.holds or ()) if holds else None)
        state.prioritise(priority)
        record.expect(ends)
        record.allow(flags)
        if notes is not record.reading:
            record.read(notes)
        changed = dict.fromkeys([*come, *changes.remove_jobs, *ends, *flags, *priority])
        record.note(" and ".join(told) or "time went on", changed, (*records, *where), stopped=halted)
        state.set_time(max(changes.now_ms, record.now_ms))
        state.number_classes_anew()
        state.drop_stand_ins(gone)

    def _start(self, held: Running) -> None:
        """Count a waiting job as running where another system started it, whatever keeps jobs from starting there."""
        record = self._state.record
        check_place(record, held)
        self._state.adopt(held)
        record.note(f"{names([held.job])} started elsewhere", started=[held.job])


def _refuse_odd(name: str, given: Any) -> None:
    """Raise ``BadInput`` unless a field of differences has values of its kind."""
    if name in LISTS:
        kind = LISTS[name]
        words = "ids" if kind is str else f"records of placeopt.model.{kind.__name__}"
        listed(name, given, words)
        if isinstance(given, str) or not all(isinstance(one, kind) for one in given):
            raise BadInput(f"{name}: expected {words}")
    elif name == "now_ms":
        expect(name, given, int, "a whole number")
    elif name != "reload":
        mapped(name, given)


def _text(kind: str, before: Mapping[str, Node | Hold], after: Mapping[str, Node | Hold | None]) -> list[str]:
    """Say which nodes or holds came, changed and went; ``after``: None of those that went, else the new record."""
    did: dict[str, list[str]] = {}
    for name, record in after.items():
        did.setdefault("went" if record is None else "changed" if name in before else "came", []).append(name)
    return [
        f"{kind}{'s' * (len(ids) > 1)} {', '.join(map(repr, ids[:5]))}"
        + f" and {len(ids) - 5} more" * (len(ids) > 5)
        + f" {what}"
        for what, ids in did.items()
    ]
