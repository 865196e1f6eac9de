"""Tables of plain values: one form for Markdown, CSV and the terminal."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from placeopt.errors import printable
from placeopt.readable import amount

Value = str | int | float | None
"""Content of a table's cell; None is unknown."""


@dataclass(frozen=True)
class Table:
    """Rows of plain values under named columns; ``name`` is that of its CSV file, without the ending."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]

    def csv(self) -> str:
        """Return the table as CSV: all digits, unknown values left empty."""
        return csv_text(self.columns, self.rows)

    def markdown(self) -> str:
        """Return the table in Markdown, numbers rounded for reading."""
        return markdown_table(self.columns, self.rows)


def markdown_table(
    columns: Sequence[str],
    rows: Iterable[Sequence[Value]],
    *,
    right: Sequence[str] = (),
    aligned: bool = False,
    unknown: str = "-",
) -> str:
    """
    Return a table in Markdown; every line ends with a line break.

    ``rows``: Values, one sequence per row; a ``|`` in a text is escaped. ``right``: Headers of the columns aligned to
    the right; numbers, as a rule. ``aligned``: Whether each column is padded to its widest cell, so that the source
    reads as plain text too. ``unknown``: What stands for None.
    """
    cells = [[unknown if value is None else readable(value).replace("|", "\\|") for value in row] for row in rows]
    widths = [max(map(len, column)) if aligned else 0 for column in zip(columns, *cells, strict=True)]
    is_right = [name in right for name in columns]

    def line(texts: Sequence[str]) -> str:
        padded = [
            text.rjust(width) if to_right else text.ljust(width)
            for text, width, to_right in zip(texts, widths, is_right, strict=True)
        ]
        return f"| {' | '.join(padded)} |\n"

    marks = [width if aligned else 3 for width in widths]
    rule = [f"{'-' * (mark - 1)}{':' if to_right else '-'}" for mark, to_right in zip(marks, is_right, strict=True)]
    return line(columns) + line(rule) + "".join(map(line, cells))


def readable(value: Value) -> str:
    """Return a value as text for reading: thousands separators, four significant digits, a dash for unknown."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return amount(value)
    return f"{value:,}" if isinstance(value, int) else value


FORMULA = ("=", "+", "-", "@")
"""A cell that begins so is taken for a formula by spreadsheets."""


def csv_text(header: Sequence[object], rows: Iterable[Sequence[object]]) -> str:
    """
    Return a table as CSV: None as an empty cell, numbers as they are.

    Text that a spreadsheet would run as a formula is written with an apostrophe before it, which spreadsheets hide;
    tabs, carriage returns and other text that cannot be seen is escaped.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([_cell(value) for value in header])
    writer.writerows([_cell(value) for value in row] for row in rows)
    return out.getvalue()


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
