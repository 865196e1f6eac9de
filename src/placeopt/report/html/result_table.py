"""Results as tables that a page shows and that two pages are compared by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Literal, NamedTuple

from placeopt.readable import amount, percent, time_unit

Cell = str | int | float | None
Unit = Literal["", "s", "share", "decision_s"]
"""Of a column: a number or text, a time, a part of a whole, or a time that is always in seconds."""


Better = Literal["less", "more", ""]


class Column(NamedTuple):
    """A column of results; ``better``: which values are."""

    name: str
    unit: Unit = ""
    better: Better = ""


@dataclass(frozen=True)
class ResultTable:
    """
    Results, a row each; times in seconds.

    ``name``: What tables of two pages are paired by. ``keys``: Number of leading columns that identify a row.
    ``partial``: First cells of the rows whose figures are of a part of the jobs and compare with no others.
    ``colours``: Of first cells, as in the figures.
    """

    name: str
    title: str
    caption: str
    columns: tuple[Column, ...]
    rows: Sequence[Sequence[Cell]]
    keys: int = 1
    partial: frozenset[str] = frozenset()
    colours: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse rows of another length than the columns, and keys beyond them."""
        if any(len(row) != len(self.columns) for row in self.rows) or not 1 <= self.keys <= max(1, len(self.columns)):
            raise ValueError(f"table {self.name!r} has rows of another length than its {len(self.columns)} columns")

    def time_unit(self) -> tuple[float, str]:
        """Return the one unit of its times: that which suits the middle one of its columns."""
        longest = [
            max([abs(cell) for row in self.rows for cell in [row[i]] if isinstance(cell, int | float)], default=0.0)
            for i, column in enumerate(self.columns)
            if column.unit == "s"
        ]
        return time_unit(median(longest) if longest else 0.0)

    def best(self, column: int) -> Cell:
        """Return the best value of a column; None if nothing is better, or all are alike."""
        better = self.columns[column].better
        values = [row[column] for row in self.rows if str(row[0]) not in self.partial]
        known = [value for value in values if isinstance(value, int | float)]
        if not better or len(set(known)) < 2:
            return None
        return min(known) if better == "less" else max(known)


def shown(value: Cell, column: Column, unit: tuple[float, str]) -> str:
    """Return a value as text, a time in this unit."""
    if not isinstance(value, int | float):
        return "-" if value is None else value
    if column.unit == "share":
        return percent(value)
    return amount(value / unit[0] if column.unit == "s" else value, 3)


def named(column: Column, unit: tuple[float, str]) -> str:
    """Return a column's heading, with the unit."""
    words = {"s": f", {unit[1]}", "decision_s": ", seconds"}.get(column.unit, "")
    return column.name + words
