"""Tables of plain values in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from placeopt.readable import amount

Value = str | int | float | None
"""Content of a table's cell; None is unknown."""


@dataclass(frozen=True)
class Table:
    """Rows of plain values under named columns."""

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]


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
