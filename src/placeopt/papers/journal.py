"""The results of ``bench papers``: JSON lines that are only ever appended to, by one command at a time."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Self

from placeopt.errors import BadInput
from placeopt.formats.rows import RowFile, read_rows
from placeopt.papers.records import Case, Line, Row, Start

NAME = "results.jsonl"
EXPECTED = "a start or a row of 'bench papers'"


class Journal:
    """
    Appends to the results of a folder; a context manager that keeps others out.

    Raises
    ------
    BadInput
        If the folder cannot be made or written, another command holds it, or a line is no record.
    """

    def __init__(self, folder: Path) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise BadInput(f"{folder}: cannot be written: {error.strerror or error}") from None
        self._file = RowFile(folder / NAME, Line, EXPECTED)
        self.starts, self.rows = _sorted(self._file.found)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.__exit__(kind, error, trace)

    def append(self, record: Start | Row) -> None:
        """Write one line, whole, and have it on the disk before returning."""
        if isinstance(record, Start):
            self._file.append(Line(start=record))
            self.starts.append(record)
        else:
            self._file.append(Line(row=record))
            self.rows[record.case] = record


def read_results(folder: Path) -> tuple[list[Start], dict[Case, Row]]:
    """
    Read the starts and the rows of a folder; of a case that was run more than once the last row.

    Raises
    ------
    BadInput
        If there is no such file, or a line other than a last one without an end is no record.
    """
    return _sorted(read_rows(folder / NAME, Line, EXPECTED))


def _sorted(lines: Iterable[Line]) -> tuple[list[Start], dict[Case, Row]]:
    lines = list(lines)
    starts = [line.start for line in lines if line.start is not None]
    return starts, {line.row.case: line.row for line in lines if line.row is not None}
