"""Whether a journal is as it was written: read at the start of a service, without changing a byte of it."""

from __future__ import annotations

import hashlib
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

from placeopt.errors import BadInput
from placeopt.service.state_folder import LAST_CHANGE, StateFolder

if TYPE_CHECKING:
    from pathlib import Path

FORMAT = 2
SEALED = {
    "entries": ("number", "revision", "words", "steps", "before"),
    "snapshots": ("number", "instance"),
    "replies": ("key", "number", "request", "reply"),
    "actions": ("revision", "place", "number", "job", "action", "outcome", "detail"),
    "reservations": ("job", "reservation"),
}
"""Table -> columns; ``digest`` is that of the others. ``before`` is the digest of the change before."""
WAY_OUT = (
    "put back a copy of the folder that was made while no service ran; or move the folder away, start with an empty "
    "one, and load the cluster with put_cluster"
)
DAMAGE = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)
Field = int | str | bytes | None


def digest_of(*fields: Field) -> bytes:
    """Return the digest of a row."""
    sealed = hashlib.sha256()
    for field in fields:
        data = field if isinstance(field, bytes) else repr(field).encode()
        sealed.update(b"%d:" % len(data))
        sealed.update(data)
    return sealed.digest()


def unreadable(path: Path | str, error: sqlite3.Error) -> BadInput:
    """Return the refusal to start for a fault of sqlite: damage, or a journal that is well and cannot be opened."""
    if (error.sqlite_errorcode & 0xFF if hasattr(error, "sqlite_errorcode") else 0) in DAMAGE:
        return BadInput(f"{path}: cannot be read as a journal: {error}; {WAY_OUT}")
    return BadInput(
        f"{path}: cannot be opened: {error}; nothing of it was changed, and it can be used again once there is room on "
        "the disk and the folder can be written"
    )


def check_intact(folder: StateFolder) -> None:
    """
    Check that a folder has all that a service answered.

    Raises
    ------
    BadInput
        If a part is missing, was altered or cut off, or another version wrote it; says what, and how to go on.
    """
    path, last = folder.database, folder.last_change()
    if not path.exists():
        if last is not None and last.number:
            raise BadInput(f"{path}: is missing, though change {last.number} was answered; {WAY_OUT}")
        return
    try:
        with closing(sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)) as database:
            _check(database, folder)
    except sqlite3.Error as error:
        raise unreadable(path, error) from None


def _check(database: sqlite3.Connection, folder: StateFolder) -> None:
    run, path = database.execute, folder.database
    version = run("PRAGMA user_version").fetchone()[0]
    if version not in (0, FORMAT):
        raise BadInput(
            f"{path}: is of format {version}, expected {FORMAT}: another version of placeopt wrote it; start that one, "
            "or move the folder away and load the cluster with put_cluster"
        )
    if (found := run("PRAGMA quick_check(1)").fetchone()[0]) != "ok":
        raise BadInput(f"{path}: is damaged: {found}; {WAY_OUT}")
    ended = _check_rows(database, path) if version else 0
    if (last := folder.last_change()) is None:
        return
    row = run("SELECT digest FROM entries WHERE number = ?", (last.number,)).fetchone() if version else None
    if last.number > ended:
        raise BadInput(
            f"{path}: ends at change {ended}, though change {last.number} was answered: {path.name}-wal was cut off or "
            f"removed, or an older copy was put back; put the right files back; or, to go on without the changes from "
            f"{ended + 1} on, delete {folder.path / LAST_CHANGE} and load what runs now with put_cluster"
        )
    if last.number and (row is None or row[0] != last.digest):
        raise BadInput(
            f"{path}: change {last.number} is another one than was answered: the file is of another service; {WAY_OUT}"
        )


def _check_rows(database: sqlite3.Connection, path: Path) -> int:
    """Check every row, and that changes follow each other without a gap; return the number of the last one."""
    for table, columns in SEALED.items():
        for *fields, digest in database.execute(f"SELECT {', '.join(columns)}, digest FROM {table}"):  # noqa: S608
            if digest_of(*fields) != digest:
                raise BadInput(f"{path}: {table}: the row of {fields[0]!r} was altered; {WAY_OUT}")
    snapshots = [number for (number,) in database.execute("SELECT number FROM snapshots ORDER BY number")]
    ended, before = 0, None
    for number, seen, digest in database.execute("SELECT number, before, digest FROM entries ORDER BY number"):
        if ended and (number != ended + 1 or seen != before):
            raise BadInput(f"{path}: a change between {ended} and {number} is missing; {WAY_OUT}")
        if not ended and number > (snapshots[0] if snapshots else 0) + 1:
            raise BadInput(f"{path}: the changes before {number} are missing; {WAY_OUT}")
        ended, before = number, digest
    if ended and not snapshots:
        raise BadInput(f"{path}: has {ended} changes, but not the snapshot that they begin with; {WAY_OUT}")
    if snapshots and snapshots[-1] > ended:
        raise BadInput(f"{path}: the changes up to snapshot {snapshots[-1]} are missing; {WAY_OUT}")
    return ended
