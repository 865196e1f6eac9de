"""
The log of a simulation: one JSON object a line, the same bytes for the same scenario, policy and seed.

It holds every decision and no measured time.
"""

from __future__ import annotations

import fcntl
import json
import os
import re
from pathlib import Path
from types import TracebackType
from typing import Self, TextIO

from placeopt.errors import BadInput


def log_name(scenario: str, policy: str, seed: int) -> str:
    """Name the log of a simulation; what file systems may not take becomes a dash."""
    return f"{re.sub(r'[^A-Za-z0-9._-]+', '-', f'{scenario}.{policy}.s{seed}')}.jsonl"


def logged_policy(log: str, scenario: str, seed: int) -> str:
    """Return the policy in a log's file name, as `log_name` wrote it; the whole name if another program chose it."""
    before, after = log_name(scenario, "", seed).removesuffix(f".s{seed}.jsonl"), f".s{seed}.jsonl"
    made = log.startswith(before) and log.endswith(after)
    return log[len(before) : len(log) - len(after)] if made else log.removesuffix(".jsonl")


class EventLog:
    """
    Writes lines to a file, in place of what it holds; without a ``path`` nothing is written.

    A context manager: it opens, locks and empties the file on entry, and then raises `BadInput` if the file cannot be
    written, or another simulation writes it.
    """

    def __init__(self, path: str | os.PathLike[str] | None) -> None:
        self._path = None if path is None else Path(path)
        self._file: TextIO | None = None

    def __enter__(self) -> Self:
        self._file = None if self._path is None else _open(self._path)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()

    @property
    def writes(self) -> bool:
        """Whether lines are written; otherwise none need be made."""
        return self._file is not None

    def write(self, **line: object) -> None:
        """Write a line."""
        if self._file is not None:
            self._file.write(json.dumps(line, separators=(",", ":"), ensure_ascii=False) + "\n")

    def flush(self) -> None:
        """Pass what was written to the operating system."""
        if self._file is not None:
            self._file.flush()


def _open(path: Path) -> TextIO:
    """Open, lock and empty a file."""
    try:
        file = path.open("a", encoding="utf-8", newline="\n")
    except OSError as error:
        raise BadInput(f"{path}: cannot be written: {error.strerror or error}") from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise BadInput(f"{path}: another simulation writes there; wait for it or name another folder") from None
    if os.fstat(file.fileno()).st_size:  # not of a device, such as /dev/null
        file.truncate(0)
    return file
