"""Tables of a view as CSV: plain numbers, one table after the other under its name."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from typing import Any, Protocol

from placeopt.view.records import Cell, Column, Table, View

FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""What makes a cell a formula where a spreadsheet opens the file (OWASP, "CSV Injection")."""


class _Writer(Protocol):
    """Of `csv`, which names no such class."""

    def writerows(self, rows: Iterable[Iterable[Any]]) -> object:
        """Write lines."""


def as_csv(view: View) -> str:
    """
    Return the tables of a view as CSV (RFC 4180).

    Units stand in the headers, and text that a spreadsheet would take for a formula has an apostrophe before it. Where
    there are several tables, each begins with a line of its name, and an empty line ends it.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    for number, table in enumerate(view.tables):
        if len(view.tables) > 1:
            writer.writerows([*([[]] if number else []), [_safe(table.name)]])
        _write(writer, table)
    return out.getvalue()


def _write(writer: _Writer, table: Table) -> None:
    writer.writerows(
        [[_header(column) for column in table.columns], *([_safe(cell) for cell in row] for row in table.rows)]
    )


def _header(column: Column) -> str:
    return f"{column.name} ({column.unit})" if column.unit not in ("", "change") else column.name


def _safe(cell: Cell) -> Cell:
    return f"'{cell}" if isinstance(cell, str) and cell.startswith(FORMULA) else cell
