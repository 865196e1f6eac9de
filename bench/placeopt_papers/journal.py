"""The results of ``bench papers``: JSON lines, append-only, written by one command at a time."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from placeopt.formats.files import make_folder
from placeopt.formats.json_lines import JsonLinesFile, read_json_lines
from placeopt_papers.records import CampaignStart, PaperCase, PaperRow, ResultLine

NAME = "results.jsonl"
EXPECTED = "a start or a row of 'bench papers'"


def open_results(folder: Path) -> JsonLinesFile[ResultLine]:
    """
    Open the results of a folder for appending; a context manager that holds a lock on the file.

    Raises
    ------
    BadInput
        If the folder cannot be made or written, another command holds it, or a line is no record.
    """
    return JsonLinesFile(make_folder(folder) / NAME, ResultLine, EXPECTED)


def read_results(folder: Path) -> tuple[list[CampaignStart], dict[PaperCase, PaperRow]]:
    """
    Return the starts and the rows of a folder; the last row of a case counts.

    Raises
    ------
    BadInput
        If there is no such file, or a line other than a last one without an end is no record.
    """
    lines = read_json_lines(folder / NAME, ResultLine, EXPECTED)
    return [line.start for line in lines if line.start is not None], rows_of(lines)


def rows_of(lines: Iterable[ResultLine]) -> dict[PaperCase, PaperRow]:
    """Return the last row of every case."""
    return {line.row.case: line.row for line in lines if line.row is not None}
