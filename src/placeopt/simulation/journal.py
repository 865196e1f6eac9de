"""
The log of a simulation: one JSON object a line, the same bytes for the same scenario, policy and seed.

It holds every decision and no measured time, so a simulation that was cancelled goes on from it: logged decisions are
carried out again and compared line by line.
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
from placeopt.scheduling.decision import Line

ANEW = "start again without resuming (--no-resume), or name another folder"


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
    Writes lines; while lines of an older log are left, compares with those instead.

    A context manager: it opens and locks the file on entry, and then raises `BadInput` if the file cannot be written,
    another simulation writes it, or it is not text. Without a ``path`` nothing is written. With ``resume`` it goes on
    from an existing log, whose incomplete last line is dropped; otherwise the file is rewritten.
    """

    def __init__(self, path: str | os.PathLike[str] | None, *, resume: bool = False) -> None:
        self._path = None if path is None else Path(path)
        self._resume = resume
        self._old: list[str] = []
        self._at = 0
        self._file: TextIO | None = None

    def _open(self, path: Path) -> TextIO:
        """Open and lock the file, and read or empty it."""
        try:
            file = path.open("a", encoding="utf-8", newline="\n")
        except OSError as error:
            raise BadInput(f"{path}: cannot be written: {error.strerror or error}") from None
        try:
            self._begin(file, path)
        except BaseException:
            file.close()
            raise
        return file

    def _begin(self, file: TextIO, path: Path) -> None:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise BadInput(f"{path}: another simulation writes there; wait for it or name another folder") from None
        if not self._resume:
            if os.fstat(file.fileno()).st_size:  # not of a device, such as /dev/null
                file.truncate(0)
            return
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            raise BadInput(f"{path}: not UTF-8, so no log of a simulation; {ANEW}") from None
        except OSError as error:
            raise BadInput(f"{path}: cannot be read: {error.strerror or error}") from None
        whole = text[: text.rfind("\n") + 1]
        self._old = whole.split("\n")[:-1]  # names may hold other characters that splitlines splits at
        if len(whole) < len(text):
            file.truncate(len(whole.encode()))

    def __enter__(self) -> Self:
        self._file = None if self._path is None else self._open(self._path)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._file is not None:
            self._file.close()

    @property
    def replaying(self) -> bool:
        """Whether lines of the older log are left."""
        return self._at < len(self._old)

    @property
    def reads_lines(self) -> bool:
        """Whether lines are written or compared; otherwise none need be made."""
        return self._file is not None

    def write(self, **line: object) -> None:
        """Write a line, or compare it with the older log; raises `BadInput` if that has another line there."""
        if self._file is None:
            return
        text = json.dumps(line, separators=(",", ":"), ensure_ascii=False)
        if self.replaying:
            if text != self._old[self._at]:
                raise BadInput(
                    f"{self._path}: line {self._at + 1}: {_cut(self._old[self._at])}, expected {_cut(text)}: the log "
                    f"is of another scenario, policy, seed or version; {ANEW}"
                )
            self._at += 1
        else:
            self._file.write(text + "\n")

    def decision(self, number: int) -> Line | None:
        """Return the line of a round in the older log; None if it has none, or no lines are left."""
        if not self.replaying:
            return None
        try:
            line = json.loads(self._old[self._at])
        except (ValueError, RecursionError):
            raise BadInput(f"{self._path}: line {self._at + 1}: no JSON; {ANEW}") from None
        return line if isinstance(line, dict) and line.get("e") == "round" and line.get("n") == number else None

    def flush(self) -> None:
        """Pass what was written to the operating system."""
        if self._file is not None:
            self._file.flush()


def _cut(text: str) -> str:
    return text if len(text) <= 120 else text[:117] + "..."
