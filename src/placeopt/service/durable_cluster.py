"""
A live cluster with its journal: every change is carried out, written down, and only then told.

If the journal cannot take a change, or a change fails between its steps, the cluster is read back from the journal, so
that what callers were told and what a restart finds are the same. All methods are called by one thread.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import NamedTuple

from pydantic import BaseModel

from placeopt.documents.documents import dumps, loads
from placeopt.edits import ChangeQueue, SetPolicy, Step
from placeopt.errors import BadInput, PlaceoptError
from placeopt.live_cluster.cluster_record import without_groups
from placeopt.live_cluster.engine import Engine
from placeopt.model import Instance, Policy, ReadingNote
from placeopt.service.intact import WAY_OUT
from placeopt.service.issued_actions import Settled, action_row
from placeopt.service.journal import FORGET_EVERY, Entry, Journal, Stored
from placeopt.service.messages import ClusterState, IssuedAction
from placeopt.service.refused import Refused
from placeopt.service.steps import Commit, read_steps, words_of, write_steps

GROUPS = "groups of workers, preferred levels or conditions of a group, which only whole rounds place"
LAST_REVISION = 2**52
"""No cluster is loaded at a later one, so that revisions never run out."""


class Change(NamedTuple):
    """What a change did: its steps in words too, the reply, the actions returned and the outcomes that are known."""

    steps: Sequence[Step | Commit]
    words: str
    reply: BaseModel
    actions: Sequence[IssuedAction] = ()
    outcomes: Sequence[Settled] = ()
    loaded: bool = False
    """Whether another cluster was loaded, so that a snapshot is due, and no reservation of pods holds any more."""
    reservations: Mapping[str, str | None] = MappingProxyType({})
    """Job -> reservation of its pods, where it changed; None: there is none any more."""

    def after(self, steps: Sequence[Step]) -> Change:
        """Return the change with steps that come before it."""
        words = " and ".join(filter(None, (words_of(steps), self.words)))
        return self._replace(steps=(*steps, *self.steps), words=words)


class DurableCluster:
    """
    The cluster of a service.

    Parameters
    ----------
    journal
        Where it is kept.
    host_driver
        Whether a driver of a host system says what runs after every start.

    Raises
    ------
    BadInput
        If the journal cannot be read.
    """

    def __init__(self, journal: Journal, *, host_driver: bool) -> None:
        self.journal = journal
        self.fault: str | None = None
        """Why nothing can be done until the service is started again."""
        self.policy = Policy()
        self._engine = Engine()
        self._name: str | None = None
        self._greeted = not host_driver
        try:
            self._restore()
        except BaseException:
            self._engine.close()
            raise

    def close(self) -> None:
        """Close engine and journal."""
        self._engine.close()
        self.journal.close()

    @property
    def ready(self) -> bool:
        """Whether decisions are taken: with a host driver, once the host has said what runs."""
        return self._greeted and self.fault is None

    @property
    def engine(self) -> Engine:
        """
        The engine, with a cluster.

        Raises
        ------
        Refused
            422, if none is loaded.
        """
        if self._name is None:
            raise Refused(422, "no cluster is loaded; begin with put_cluster")
        return self._engine

    @property
    def deciding(self) -> Engine:
        """
        The engine, for decisions.

        Raises
        ------
        Refused
            422 or 503, if no cluster is loaded, or the host has not said yet what runs.
        """
        engine = self.engine
        if not self.ready:
            raise Refused(503, self.fault or "the host has not said yet what runs", more={"retry_after_s": 1})
        return engine

    @property
    def revision(self) -> int | None:
        """The present revision; None without a cluster."""
        return None if self._name is None else self._engine.revision

    def expect(self, revision: int | None) -> None:
        """Raise `Refused` with 409 if a revision is given that is not the present one."""
        now = self.engine.revision
        if revision not in (None, now):
            raise Refused(
                409, f"revision: {revision}, the cluster is at {now}", place="revision", more={"revision": now}
            )

    def state(self) -> ClusterState:
        """Return the cluster in numbers; zeros without one."""
        if self._name is None:
            return ClusterState(revision=0, waiting=0, running=0, nodes=0, ready=False)
        return ClusterState(**self._engine.numbers._asdict(), ready=self.ready)

    def load(self, instance: Instance) -> tuple[ReadingNote, ...]:
        """
        Keep another cluster from now on; what a host finds running counts as its word.

        Returns what it leaves out beside what its reader did: jobs of groups that wait, which no engine keeps.

        Raises
        ------
        Refused
            400, if the revisions of the journal would run out.
        """
        if self.revision is not None:  # revisions of one journal never go back
            instance = instance.model_copy(update={"revision": max(instance.revision, self.revision + 1)})
        if instance.revision > LAST_REVISION:
            raise Refused(400, f"revision: {instance.revision}, expected at most {LAST_REVISION}", place="revision")
        instance, waiting = without_groups(instance)
        left = (ReadingNote(kind="left out", reason=GROUPS, names=waiting),) if waiting else ()
        self._keep(instance.model_copy(update={"reading": (*instance.reading, *left)}) if left else instance)
        self._greeted = True
        return left

    def carry_out(self, step: Step | Commit) -> tuple[str, ...]:
        """Do a step, and return the jobs that ran and wait now."""
        if isinstance(step, Commit):
            step.carry_out(self.engine, self._name or "", self.policy)
            return ()
        waiting = self.engine.edit((step,))
        if isinstance(step, SetPolicy | ChangeQueue):
            self.policy = self.engine.snapshot.policy
        return waiting

    @contextmanager
    def together(self) -> Iterator[None]:
        """
        Do changes that are on disk at the end, all of them or none: nothing of them may be returned before.

        Raises
        ------
        Refused
            503, if the journal cannot be written.
        """
        greeted = self._greeted
        try:
            with self.journal.together():
                yield
        except sqlite3.Error as error:
            self._greeted = greeted
            self._restore_or_stop()
            raise _unwritten(error) from error

    def change(self, work: Callable[[], Change], key: str | None, digest: bytes) -> tuple[bytes, Entry | None]:
        """
        Do a change, or nothing if it fails; a change under a key that was answered is not done again.

        It is on disk at the end of `together`.

        Parameters
        ----------
        work
            Carries it out, and says what it came to.
        key, digest
            ``Idempotency-Key``, and the digest of the request.

        Returns
        -------
        tuple
            The reply as JSON, and its row in the journal, if it has one.

        Raises
        ------
        Refused
            422 for a key of another request, 503 if the journal cannot be written; and whatever ``work`` raises.
        """
        if key is not None and (stored := self.journal.stored(key)) is not None:
            if stored.request != digest:
                raise Refused(422, f"Idempotency-Key {key!r} was used for another request")
            return stored.reply, None
        if self.fault is not None:
            raise Refused(503, self.fault)
        before, greeted = self.revision, self._greeted
        try:
            change = work()
            reply = change.reply.model_dump_json(by_alias=True).encode()
            entry = self._write(change, key, Stored(digest, reply))
        except sqlite3.Error as error:
            self._greeted = greeted
            self._restore_or_stop()
            raise _unwritten(error) from error
        except BaseException:
            self._greeted = greeted
            if self.revision != before:  # every step that does something raises it
                self._restore_or_stop()
            raise
        return reply, entry

    def _write(self, change: Change, key: str | None, stored: Stored) -> Entry | None:
        """Write a change; nothing if there was none and no reply is to be kept."""
        is_entry = bool(change.steps or change.outcomes or change.loaded or key is not None)
        if not (is_entry or change.reservations):
            return None
        with self.journal.change():
            old = dict.fromkeys(self.journal.reservations()) if change.loaded else {}
            self.journal.set_reservations({**old, **change.reservations})
            if not is_entry:
                return None
            entry = self.journal.add(self.revision or 0, change.words, write_steps(change.steps))
            if key is not None:
                self.journal.add_reply(key, entry.number, stored)
            self.journal.add_actions(entry.number, map(action_row, change.actions))
            self.journal.set_outcomes(change.outcomes)
            if change.loaded:  # no steps lead there
                self.journal.add_snapshot(entry.number, dumps(self.engine.snapshot))
            if entry.number % FORGET_EVERY == 0:
                self.journal.forget(entry.number, self._has_job)
        return entry

    def _has_job(self, job: str) -> bool:
        try:
            self._engine.job(job)
        except BadInput:
            return False
        return True

    def _keep(self, instance: Instance) -> None:
        self._engine.load(instance)
        self._name, self.policy = instance.name, instance.policy

    def _restore(self) -> None:
        """Read the cluster from the journal."""
        snapshot, entries = self.journal.start()
        if snapshot is None:
            self._name = None
            return
        self._keep(loads(Instance, snapshot, source="journal"))
        for entry in entries:
            try:
                for step in read_steps(entry.steps):
                    self.carry_out(step)
            except (PlaceoptError, ValueError) as error:
                raise BadInput(f"journal: change {entry.number} cannot be done again: {error}; {WAY_OUT}") from None
            if self._engine.revision != entry.revision:
                is_load = entry.steps == write_steps(())
                why = "the snapshot after it is missing" if is_load else "this version of placeopt does it otherwise"
                revisions = f"leads to revision {self._engine.revision}, it was {entry.revision}"
                raise BadInput(f"journal: change {entry.number} {revisions}: {why}; {WAY_OUT}")

    def _restore_or_stop(self) -> None:
        try:
            self._restore()
        except (PlaceoptError, sqlite3.Error) as error:
            self.fault = f"the cluster cannot be read back from the journal: {error}; restart the service"


def _unwritten(error: sqlite3.Error) -> Refused:
    return Refused(503, f"the journal cannot be written: {error}; nothing changed")
