"""Files of JSON records, one a line, append-only, with one writer at a time."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import Generic, Self, TypeVar

from pydantic import ValidationError

from placeopt.documents.files import check_lines, read_bytes
from placeopt.errors import BadInput
from placeopt.model.base import Record

R = TypeVar("R", bound=Record)


class JsonLinesFile(Generic[R]):
    """
    Appends records of one kind to a file; a context manager that keeps others out. None: no file, nothing is kept.

    A line that a kill has cut off is removed when the file is opened: no whole line is lost. ``found``: The records
    that the file held when it was opened. ``expected`` says what each line should be, for messages.
    """

    def __init__(self, path: Path | None, kind: type[R], expected: str) -> None:
        self._path, self.found = path, list[R]()
        self._file: int | None = None
        if path is None:
            return
        try:
            self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise BadInput(f"{path}: cannot be written: {error.strerror or error}") from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._file)
            raise BadInput(f"{path}: another run writes there; wait for it or name another one") from None
        try:
            self.found = read_json_lines(path, kind, expected)
            _cut_tail(self._file)
        except BaseException:
            os.close(self._file)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            os.close(self._file)

    def append(self, record: R) -> None:
        """Write one line, whole, and have it on the disk before returning."""
        if self._file is None:
            return
        data = (record.model_dump_json(exclude_defaults=True) + "\n").encode()
        try:
            while data:
                data = data[os.write(self._file, data) :]
            os.fsync(self._file)
        except OSError as error:
            raise BadInput(f"{self._path}: cannot be written: {error.strerror or error}") from None


def _cut_tail(file: int) -> None:
    size = os.fstat(file).st_size
    whole = 0 if size == 0 else os.pread(file, size, 0).rfind(b"\n") + 1
    if whole < size:
        os.ftruncate(file, whole)


def read_json_lines(path: Path, kind: type[R], expected: str) -> list[R]:
    """Return the records of all whole lines; ``expected`` names the kind, for messages."""
    data = read_bytes(path)
    check_lines(data, str(path))
    *lines, _ = data.split(b"\n")  # what follows the last line's end was cut off
    rows: list[R] = []
    for number, text in enumerate(lines, 1):
        try:
            rows.append(kind.model_validate_json(text))
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise BadInput(f"{path}:{number}: {where or 'line'}: {first['msg']}; expected {expected}") from None
    return rows
