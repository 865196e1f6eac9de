"""The journal of a benchmark: JSON lines, append-only, written by one run at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from placeopt.benchmark.records import JournalLine, Row, RunRecord
from placeopt.errors import BadInput
from placeopt.formats.files import make_folder
from placeopt.formats.json_lines import JsonLinesFile, read_json_lines
from placeopt.formats.solu import Known

NAME = "results.jsonl"
SOLUTIONS = "solutions"
EXPECTED = "a run or a row"


class Journal:
    """
    The journal of a folder, opened for appending; a context manager that holds a lock on the file.

    Opening removes a last line that a kill has cut off; complete lines are never lost.

    Raises
    ------
    BadInput
        If the folder cannot be made or written, another run holds it, or a line is no record.
    """

    def __init__(self, folder: Path) -> None:
        make_folder(make_folder(folder) / SOLUTIONS)
        self._file = JsonLinesFile(folder / NAME, JournalLine, EXPECTED)
        self.runs, self.rows = _sorted(self._file.found)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.__exit__(kind, error, trace)

    def append(self, record: RunRecord | Row) -> None:
        """Append one line and flush it to the disk."""
        self._file.append(JournalLine(run=record) if isinstance(record, RunRecord) else JournalLine(row=record))
        if isinstance(record, RunRecord):
            self.runs.append(record)
        else:
            self.rows[record.case.key] = record


def read_journal(folder: Path) -> tuple[list[RunRecord], dict[str, Row]]:
    """
    Return the runs of a folder and its rows by the key of their case; the last row of a case counts.

    Raises
    ------
    BadInput
        If there is no journal, or a line other than a last one without an end is no record.
    """
    path = folder / NAME
    if not path.is_file():
        raise BadInput(f"{path}: no such file; expected a folder that 'bench run --out' has made")
    return _sorted(read_json_lines(path, JournalLine, EXPECTED))


def known_at_run(rows: Iterable[Row], older: Mapping[str, Known]) -> dict[str, Known]:
    """
    Return by the key of each case the values that its run knew of the instance.

    ``older``: known values by instance, for rows of journals that do not state them.
    """
    return {
        row.case.key: older.get(row.case.instance, Known())
        if row.known is None
        else Known(row.known.value, row.known.bound)
        for row in rows
    }


def _sorted(lines: Sequence[JournalLine]) -> tuple[list[RunRecord], dict[str, Row]]:
    runs = [line.run for line in lines if line.run is not None]
    return runs, {line.row.case.key: line.row for line in lines if line.row is not None}
