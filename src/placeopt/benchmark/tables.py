"""Tables of figures: one form for Markdown, CSV and the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from placeopt.formats.csv_text import csv_text
from placeopt.readable import amount

Cell = str | int | float | None


@dataclass(frozen=True)
class Table:
    """
    Rows under named columns.

    Attributes
    ----------
    name
        Of its CSV file.
    title
        What it shows, for people.
    columns
        Names with units.
    rows
        Plain values; None is unknown.
    """

    name: str
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def csv(self) -> str:
        """Return it as CSV: all digits, unknown left empty."""
        return csv_text(self.columns, self.rows)

    def markdown(self) -> str:
        """Return it as a Markdown table; numbers as people read them."""
        lines = [_line(self.columns), _line(["---"] * len(self.columns))]
        lines += [_line([readable(cell).replace("|", "\\|") for cell in row]) for row in self.rows]
        return "\n".join(lines) + "\n"


def readable(cell: Cell) -> str:
    """Write a value for people: separators, four digits that count, a dash for what is unknown."""
    if cell is None:
        return "-"
    if isinstance(cell, float):
        return amount(cell)
    return f"{cell:,}" if isinstance(cell, int) else cell


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
