"""The folder of a service's state: locked by one process, with the database and what its last change was."""

from __future__ import annotations

import fcntl
import os
import re
from pathlib import Path
from typing import NamedTuple

from placeopt.errors import BadInput

DATABASE = "journal.sqlite"
LAST_CHANGE = "last-change"
_LAST_CHANGE = re.compile(rb"(\d{16}) ([0-9a-f]{64})\n")


class LastChange(NamedTuple):
    """A change that was answered: its number, and its digest."""

    number: int
    digest: bytes


class StateFolder:
    """
    A folder that one process has.

    The lock is on the folder itself, so that no file can be removed to let a second process in. Beside the database
    stands ``last-change``, the last change that was answered: what sqlite alone cannot tell is that the end of its
    journal was cut off. It is written once the change is on disk, so it is never ahead, and it is not synchronised:
    after a loss of power it may be behind, which is not a fault.

    Parameters
    ----------
    path
        The folder; made if it is not there.

    Raises
    ------
    BadInput
        If it cannot be used, or another service uses it.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.database = path, path / DATABASE
        if path.exists() and not path.is_dir():
            raise BadInput(
                f"{path}: is not a folder, so it cannot be used for the state; name a folder, which may be new"
            )
        try:
            path.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise BadInput(f"{path}: cannot be used for the state: {error.strerror or error}") from None
        self._last, self._file = -1, (0, 0)
        try:
            fcntl.flock(self._folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self.close()
            raise BadInput(f"{path}: another service uses it; end that one first, or name another folder") from None
        except OSError as error:
            self.close()
            raise BadInput(
                f"{path}: cannot be locked: {error.strerror or error}; name a folder on a local disk"
            ) from None

    def close(self) -> None:
        """Let others have it."""
        for descriptor in (self._last, self._folder):
            if descriptor >= 0:
                os.close(descriptor)
        self._last = self._folder = -1

    def last_change(self) -> LastChange | None:
        """Return the last change that was answered; None if nothing says so. Raises `BadInput` for another content."""
        path = self.path / LAST_CHANGE
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise BadInput(f"{path}: cannot be read: {error.strerror or error}") from None
        if (found := _LAST_CHANGE.fullmatch(data)) is None:
            raise BadInput(
                f"{path}: expected a number and a digest; delete it to start without this check of {DATABASE}"
            )
        return LastChange(int(found[1]), bytes.fromhex(found[2].decode()))

    def keep(self, change: LastChange) -> None:
        """Write the last change that was answered; raises `OSError`."""
        if self._last < 0:
            self._last = os.open(self.path / LAST_CHANGE, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
        os.pwrite(self._last, b"%016d %s\n" % (change.number, change.digest.hex().encode()), 0)  # always as long

    def note_database(self) -> None:
        """Note which file the database is."""
        self._file = self._identity()

    def has_database(self) -> bool:
        """Return whether the database is still the file that it was."""
        return self._file == self._identity()

    def _identity(self) -> tuple[int, int]:
        try:
            found = self.database.stat()
        except OSError:
            return 0, 0
        return found.st_dev, found.st_ino
