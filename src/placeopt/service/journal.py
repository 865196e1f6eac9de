"""
The journal: every change of the cluster as one row that is on disk before its caller hears of it, and snapshots.

An sqlite database in WAL mode, synchronised at each transaction. A row holds the steps that were carried out, the reply
under its ``Idempotency-Key`` and the actions, so all of them are there after a crash, or none. A restart
reads the latest snapshot and carries out the steps after it. Every row has a digest, and that of a change covers the
digest of the change before, so that a start finds out what is missing or was altered (``service/intact.py``). Without a
folder the database is in memory.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from placeopt.errors import BadInput
from placeopt.service.intact import FORMAT, SEALED, Field, check_intact, digest_of, unreadable
from placeopt.service.state_folder import DATABASE, LastChange, StateFolder

KEPT_ROWS = 10_000
"""Replies under a key, and actions of which nothing more will be said, are kept for as many changes."""
LEAST_ROWS = 1_000
"""Changes between two snapshots, at least; beyond them, as many bytes of changes as the snapshot has."""
FORGET_EVERY = 1_000
"""Changes between two looks for what is no longer kept."""
_TABLES = """
CREATE TABLE IF NOT EXISTS entries (
    number INTEGER PRIMARY KEY, revision INTEGER NOT NULL, words TEXT NOT NULL, steps TEXT NOT NULL,
    before BLOB NOT NULL, digest BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS snapshots (number INTEGER PRIMARY KEY, instance BLOB NOT NULL, digest BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS replies (
    key TEXT PRIMARY KEY, number INTEGER NOT NULL, request BLOB NOT NULL, reply BLOB NOT NULL, digest BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS actions (
    revision INTEGER, place INTEGER, number INTEGER NOT NULL, job TEXT NOT NULL, action TEXT NOT NULL,
    outcome TEXT NOT NULL, detail TEXT, digest BLOB NOT NULL, PRIMARY KEY (revision, place)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS rounds (id TEXT PRIMARY KEY, revision INTEGER NOT NULL, time_limit_s REAL NOT NULL);
CREATE TABLE IF NOT EXISTS reservations (job TEXT PRIMARY KEY, reservation TEXT NOT NULL, digest BLOB NOT NULL);
CREATE INDEX IF NOT EXISTS open_actions ON actions (outcome, revision, place);
CREATE INDEX IF NOT EXISTS actions_of_jobs ON actions (job, revision, place);
"""


class Entry(NamedTuple):
    """A change: its number, the revision after it, what it was in words, and its steps as JSON."""

    number: int
    revision: int
    words: str
    steps: str


class Stored(NamedTuple):
    """The reply under a key, and the digest of the request that it answers."""

    request: bytes
    reply: bytes


class ActionRow(NamedTuple):
    """An action that was returned: revision and place of its name, itself as JSON, and its outcome."""

    revision: int
    place: int
    job: str
    action: str
    outcome: str = "open"
    detail: str | None = None


class Journal:
    """
    The rows of one service. All methods are called by one thread, the constructor by any.

    Parameters
    ----------
    folder
        Where the files are; made if it is not there. None: in memory.

    Raises
    ------
    BadInput
        If the folder cannot be used, another service uses it, or it holds something else.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = None if folder is None else StateFolder(folder)
        self._is_together = self._is_changed = False
        try:
            if self._folder is not None:
                check_intact(self._folder)
            self._database = sqlite3.connect(
                ":memory:" if self._folder is None else self._folder.database,
                isolation_level=None,
                check_same_thread=False,
            )
            self._open()
        except (sqlite3.Error, BadInput) as error:
            self._unlock()
            raise unreadable(folder or "memory", error) if isinstance(error, sqlite3.Error) else error from None

    def _open(self) -> None:
        run = self._database.execute
        run("PRAGMA journal_mode=WAL")
        run("PRAGMA synchronous=FULL")
        run("PRAGMA busy_timeout=5000")
        if run("PRAGMA user_version").fetchone()[0] != FORMAT:  # nothing is written to a journal that is there
            self._database.executescript(f"BEGIN; {_TABLES} PRAGMA user_version={FORMAT}; COMMIT")
        self._since_snapshot = self._rows_since()
        self._snapshot_bytes = self._largest_snapshot()
        self.interrupted = run("SELECT id, revision, time_limit_s FROM rounds").fetchall()
        """The rounds that began and did not end: id, revision, time limit."""
        if self.interrupted:
            run("DELETE FROM rounds")
        if self._folder is not None:
            self._folder.note_database()
            if self._folder.last_change() is None:
                self._folder.keep(self._last_change())

    def close(self) -> None:
        """Close the file, and let others open it."""
        self._database.close()
        self._unlock()

    def _unlock(self) -> None:
        if self._folder is not None:
            self._folder.close()

    def start(self) -> tuple[bytes | None, Iterator[Entry]]:
        """Return the latest snapshot, None without one, and the changes after it."""
        found = self._database.execute("SELECT number, instance FROM snapshots ORDER BY number DESC LIMIT 1").fetchone()
        if found is None:
            return None, iter(())
        return found[1], self._entries_after(found[0])

    def _entries_after(self, number: int) -> Iterator[Entry]:
        rows = self._database.execute(
            "SELECT number, revision, words, steps FROM entries WHERE number > ? ORDER BY number", (number,)
        )
        return (Entry(*row) for row in rows)

    def latest(self, count: int) -> list[Entry]:
        """Return the latest changes, the oldest of them first."""
        rows = self._database.execute(
            "SELECT number, revision, words, '' FROM entries ORDER BY number DESC LIMIT ?", (count,)
        )
        return [Entry(*row) for row in rows][::-1]

    def stored(self, key: str) -> Stored | None:
        """Return the reply under a key."""
        found = self._database.execute("SELECT request, reply FROM replies WHERE key = ?", (key,)).fetchone()
        return None if found is None else Stored(*found)

    @property
    def wants_snapshot(self) -> bool:
        """Whether a snapshot is due, so that a restart takes about as long as reading one."""
        rows, size = self._since_snapshot
        return rows >= LEAST_ROWS and size >= self._snapshot_bytes

    @contextmanager
    def together(self) -> Iterator[None]:
        """All that is written inside is on disk at the end, or none of it; one synchronisation for all changes."""
        run = self._database.execute
        run("BEGIN")
        self._is_together = True
        try:
            yield
            run("COMMIT")
            self._keep_last()
        except BaseException:
            if self._database.in_transaction:
                run("ROLLBACK")
            raise
        finally:
            self._is_together = False

    @contextmanager
    def change(self) -> Iterator[None]:
        """All that is written inside is kept, or none of it; on disk at the end of `together`, else of this."""
        run = self._database.execute
        if self._is_together and not self._database.in_transaction:  # sqlite may end it at a fault
            raise sqlite3.OperationalError("a change before it in the same transaction could not be written")
        if self._folder is not None and not self._folder.has_database():
            raise sqlite3.OperationalError(f"{DATABASE} was removed or replaced while the service ran")
        run("SAVEPOINT change")
        try:
            yield
            run("RELEASE change")
            if not self._is_together:
                self._keep_last()
        except BaseException:
            if self._database.in_transaction:
                run("ROLLBACK TO change")
                run("RELEASE change")
            raise

    def add(self, revision: int, words: str, steps: str) -> Entry:
        """Write a change, and return it with its number."""
        last = self._last_change()
        self._insert("entries", last.number + 1, revision, words, steps, last.digest)
        self._is_changed = True
        rows, size = self._since_snapshot
        self._since_snapshot = rows + 1, size + len(words) + len(steps)
        return Entry(last.number + 1, revision, words, steps)

    def add_snapshot(self, number: int, instance: bytes) -> None:
        """Write the cluster as it was after change ``number``; the snapshot before it is kept, too."""
        run = self._database.execute
        self._insert("snapshots", number, instance)
        run("DELETE FROM snapshots WHERE number NOT IN (SELECT number FROM snapshots ORDER BY number DESC LIMIT 2)")
        self._since_snapshot = self._rows_since()
        self._snapshot_bytes = len(instance)

    def forget(self, number: int, has_job: Callable[[str], bool]) -> None:
        """
        Forget what is no longer kept after change ``number``.

        Changes go once a snapshot holds them, replies and actions by age alone; but a job's last action of which
        nothing is known stays as long as the job does, since what it came to may still be told.
        """
        run, old = self._database.execute, number - KEPT_ROWS
        run("DELETE FROM entries WHERE number <= ? AND number <= (SELECT min(number) FROM snapshots)", (old,))
        run("DELETE FROM replies WHERE number < ?", (old,))
        run(
            "DELETE FROM actions WHERE number < ? AND (outcome != 'open' OR EXISTS (SELECT 1 FROM actions AS later "
            "WHERE later.job = actions.job AND (later.revision, later.place) > (actions.revision, actions.place)))",
            (old,),
        )
        jobs = run("SELECT DISTINCT job FROM actions WHERE number < ?", (old,)).fetchall()
        gone = [(job, old) for (job,) in jobs if not has_job(job)]
        self._database.executemany("DELETE FROM actions WHERE job = ? AND number < ?", gone)

    def add_reply(self, key: str, number: int, stored: Stored) -> None:
        """Write the reply under a key."""
        self._insert("replies", key, number, *stored)

    def add_actions(self, number: int, rows: Iterable[ActionRow]) -> None:
        """Write actions that are returned with change ``number``."""
        for row in rows:
            self._insert("actions", row.revision, row.place, number, row.job, row.action, row.outcome, row.detail)

    def set_outcomes(self, outcomes: Iterable[tuple[tuple[int, int], str, str | None]]) -> None:
        """Write what came of actions, by revision and place."""
        for name, outcome, detail in outcomes:
            told = self._database.execute(
                "SELECT revision, place, number, job, action FROM actions WHERE revision = ? AND place = ?", name
            ).fetchone()
            if told is not None:
                self._insert("actions", *told, outcome, detail)

    def action(self, name: tuple[int, int]) -> ActionRow | None:
        """Return an action by revision and place."""
        found = self._database.execute(
            "SELECT revision, place, job, action, outcome, detail FROM actions WHERE revision = ? AND place = ?", name
        ).fetchone()
        return None if found is None else ActionRow(*found)

    def is_last(self, row: ActionRow) -> bool:
        """Return whether no later action of the same job was returned."""
        later = self._database.execute(
            "SELECT 1 FROM actions WHERE job = ? AND (revision, place) > (?, ?) LIMIT 1",
            (row.job, row.revision, row.place),
        )
        return later.fetchone() is None

    def actions_of(self, revision: int) -> list[ActionRow]:
        """Return the actions of a commit, by the revision after it."""
        rows = self._database.execute(
            "SELECT revision, place, job, action, outcome, detail FROM actions WHERE revision = ? ORDER BY place",
            (revision,),
        )
        return [ActionRow(*row) for row in rows]

    def actions(self, outcomes: Sequence[str]) -> list[ActionRow]:
        """Return the actions with one of these outcomes."""
        marks = ", ".join("?" * len(outcomes))
        rows = self._database.execute(
            "SELECT revision, place, job, action, outcome, detail FROM actions "  # noqa: S608 - marks only
            f"WHERE outcome IN ({marks}) ORDER BY revision, place",
            tuple(outcomes),
        )
        return [ActionRow(*row) for row in rows]

    def reservations(self) -> dict[str, str]:
        """Return the reservations of pods, by job."""
        return dict(self._database.execute("SELECT job, reservation FROM reservations").fetchall())

    def set_reservations(self, reservations: Mapping[str, str | None]) -> None:
        """Write reservations, by job; None: there is none any more."""
        run = self._database.execute
        for job, text in reservations.items():
            if text is None:
                run("DELETE FROM reservations WHERE job = ?", (job,))
            else:
                self._insert("reservations", job, text)

    def begin_round(self, name: str, revision: int, time_limit_s: float) -> None:
        """Write that a round began."""
        self._database.execute("INSERT INTO rounds VALUES (?, ?, ?)", (name, revision, time_limit_s))

    def end_round(self, name: str) -> None:
        """Forget a round that is over."""
        self._database.execute("DELETE FROM rounds WHERE id = ?", (name,))

    def _insert(self, table: str, *row: Field) -> None:
        """Write a row with its digest; one under the same key is replaced, but for changes and replies."""
        how = "INSERT" if table in ("entries", "replies") else "INSERT OR REPLACE"
        columns = ", ".join((*SEALED[table], "digest"))
        marks = ", ".join("?" * (len(row) + 1))
        self._database.execute(f"{how} INTO {table} ({columns}) VALUES ({marks})", (*row, digest_of(*row)))

    def _last_change(self) -> LastChange:
        row = self._database.execute("SELECT number, digest FROM entries ORDER BY number DESC LIMIT 1").fetchone()
        return LastChange(0, bytes(32)) if row is None else LastChange(*row)

    def _keep_last(self) -> None:
        """Note beside the database what its last change is; if that fails, the note is behind: not a fault."""
        if self._folder is not None and self._is_changed:
            self._is_changed = False
            with suppress(OSError):
                self._folder.keep(self._last_change())

    def _rows_since(self) -> tuple[int, int]:
        last = self._database.execute("SELECT coalesce(max(number), 0) FROM snapshots").fetchone()[0]
        rows, size = self._database.execute(
            "SELECT count(*), coalesce(sum(length(words) + length(steps)), 0) FROM entries WHERE number > ?", (last,)
        ).fetchone()
        return rows, size

    def _largest_snapshot(self) -> int:
        return int(self._database.execute("SELECT coalesce(max(length(instance)), 0) FROM snapshots").fetchone()[0])
