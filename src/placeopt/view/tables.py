"""Tables of a view as CSV: plain numbers, one table after the other under its name."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

from placeopt.errors import printable
from placeopt.view.records import Column, View

FORMULA = ("=", "+", "-", "@")
"""A cell that begins so is taken for a formula by spreadsheets (OWASP, "CSV Injection")."""


def as_csv(view: View) -> str:
    """
    Return the tables of a view as CSV (RFC 4180).

    Units stand in the headers. Where there are several tables, each begins with a line of its name, and an empty line
    ends it. Unknown values are empty cells, numbers have all digits.
    """
    parts = []
    for table in view.tables:
        named = [[table.name]] if len(view.tables) > 1 else []
        parts.append(csv_text([*named, [_header(column) for column in table.columns], *table.rows]))
    return "\n".join(parts)


def csv_text(rows: Iterable[Sequence[object]]) -> str:
    """
    Return rows as CSV: None as an empty cell, numbers as they are.

    Text that a spreadsheet would run as a formula is written with an apostrophe before it, which spreadsheets hide;
    tabs, carriage returns and other text that cannot be seen is escaped.
    """
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([_cell(value) for value in row] for row in rows)
    return out.getvalue()


def _header(column: Column) -> str:
    return f"{column.name} ({column.unit})" if column.unit not in ("", "change") else column.name


def _cell(value: object) -> object:
    if value is None:
        return ""
    if not isinstance(value, str):
        return value
    text = printable(value)
    return f"'{text}" if text.startswith(FORMULA) and not _is_number(text) else text


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return text.strip() == text
