"""The journal of a benchmark: JSON lines that are only ever appended to, by one run at a time."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import Self

from pydantic import ValidationError

from placeopt.benchmark.records import Line, Row, Run
from placeopt.errors import BadInput
from placeopt.formats.files import read_bytes

NAME = "results.jsonl"
SOLUTIONS = "solutions"


class Journal:
    """
    Appends to the journal of a folder; a context manager that keeps others out.

    A line that a kill has cut off is taken away when the journal is opened: nothing whole is lost.

    Raises
    ------
    BadInput
        If the folder cannot be made or written, another run holds it, or a line is no record.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME
        try:
            (folder / SOLUTIONS).mkdir(parents=True, exist_ok=True)
            self._file = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise BadInput(f"{folder}: cannot be written: {error.strerror or error}") from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._file)
            raise BadInput(f"{folder}: another run writes there; wait for it or name another folder") from None
        try:
            self.runs, self.rows = read_journal(folder)
            self._cut_tail()
        except BaseException:
            os.close(self._file)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._file)

    def append(self, record: Run | Row) -> None:
        """Write one line, whole, and have it on the disk before returning."""
        line = Line(run=record) if isinstance(record, Run) else Line(row=record)
        data = (line.model_dump_json(exclude_defaults=True) + "\n").encode()
        try:
            written = os.write(self._file, data)
            if written < len(data):
                os.write(self._file, data[written:])
            os.fsync(self._file)
        except OSError as error:
            raise BadInput(f"{self._path}: cannot be written: {error.strerror or error}") from None
        if isinstance(record, Run):
            self.runs.append(record)
        else:
            self.rows[record.case.key] = record

    def _cut_tail(self) -> None:
        size = os.fstat(self._file).st_size
        whole = 0 if size == 0 else os.pread(self._file, size, 0).rfind(b"\n") + 1
        if whole < size:
            os.ftruncate(self._file, whole)


def read_journal(folder: Path) -> tuple[list[Run], dict[str, Row]]:
    """
    Read the runs and the rows of a folder; of a case that was run more than once the last row, by its key.

    Raises
    ------
    BadInput
        If there is no journal, or a line other than a last one without an end is no record.
    """
    path = folder / NAME
    if not path.is_file():
        raise BadInput(f"{path}: no such file; expected a folder that 'bench run --out' has made")
    *lines, _ = read_bytes(path).split(b"\n")  # what follows the last line's end was cut off
    runs: list[Run] = []
    rows: dict[str, Row] = {}
    for number, text in enumerate(lines, 1):
        try:
            line = Line.model_validate_json(text)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"])
            raise BadInput(f"{path}:{number}: {where or 'line'}: {first['msg']}; expected a run or a row") from None
        if line.run is not None:
            runs.append(line.run)
        if line.row is not None:
            rows[line.row.case.key] = line.row
    return runs, rows
