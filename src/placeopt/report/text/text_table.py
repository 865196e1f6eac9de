"""Tables for the terminal: no frames, dim headers, numbers to the right, no column hidden by a narrow terminal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Literal

from rich.cells import cell_len
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from placeopt.readable import duration, plain

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

INDENT, GAP = 2, 2
LEAST = 24
"""Least width of the wrapped column; droppable columns move below before it gets narrower."""


class TextTable:
    """
    Rows under dim headers, indented; a rich renderable.

    ``columns``: Headers; one that starts with ``>`` is aligned to the right. ``rows``: Cells; plain strings are made
    printable. ``wrap``: The column that is narrowed in a narrow terminal; its text is folded into lines. ``drop``:
    Columns that a narrow terminal shows in a table below, beside the first column again; they move in this order. No
    column is left out.
    """

    def __init__(
        self,
        columns: Sequence[str],
        rows: Iterable[Sequence[str | Text]],
        *,
        wrap: str = "",
        drop: Sequence[str] = (),
    ) -> None:
        self._right = [column.startswith(">") for column in columns]
        self._columns = [column.removeprefix(">") for column in columns]
        self._rows = [[cell if isinstance(cell, Text) else Text(plain(cell)) for cell in row] for row in rows]
        self._wrap, self._drop = wrap, tuple(drop)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Lay out the columns in the available width; those that do not fit are in tables below."""
        widths = [
            max([cell_len(name), *(cell_len(row[i].plain) for row in self._rows)])
            for i, name in enumerate(self._columns)
        ]
        kept, moved = list(range(len(widths))), list[int]()
        for name in self._drop:
            if self._needed(widths, kept) > options.max_width:
                kept.remove(self._columns.index(name))
                moved.append(self._columns.index(name))
        yield self._grid(kept)
        below = [i for i in range(len(widths)) if i in moved]
        while below:
            part = [0, below.pop(0)]
            while below and self._needed(widths, [*part, below[0]]) <= options.max_width:
                part.append(below.pop(0))
            yield Text("")
            yield self._grid(part)

    def _grid(self, kept: list[int]) -> Padding:
        """Return some columns as a table."""
        grid = Table(box=None, padding=(0, GAP, 0, 0), header_style="dim", pad_edge=False)
        grid.show_header = any(self._columns[i] for i in kept)
        for i in kept:
            name = self._columns[i]
            justify: Literal["left", "right"] = "right" if self._right[i] else "left"
            grid.add_column(Text(name), justify=justify, no_wrap=name != self._wrap, overflow="fold")
        for row in self._rows:
            grid.add_row(*(row[i] for i in kept))
        return Padding(grid, (0, 0, 0, INDENT))

    def _needed(self, widths: list[int], kept: list[int]) -> int:
        """Return the width that the kept columns need, the wrapped one at its least."""
        wanted = (min(LEAST, widths[i]) if self._columns[i] == self._wrap else widths[i] for i in kept)
        return INDENT + sum(wanted) + GAP * (len(kept) - 1)


def heading(title: str, note: str = "") -> Text:
    """Return a section's heading with a dim note behind it."""
    text = Text(plain(title), style="bold")
    return text.append(f"  {plain(note)}", style="not bold dim") if note else text


def section(
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str | Text]],
    *,
    note: str = "",
    wrap: str = "",
    drop: Sequence[str] = (),
    most: int | None = None,
) -> list[RenderableType]:
    """Return a heading and its table, nothing without rows; rows beyond ``most`` are counted."""
    if not rows:
        return []
    parts: list[RenderableType] = [heading(title, note), TextTable(columns, rows[:most], wrap=wrap, drop=drop)]
    return parts if most is None else [*parts, *more(len(rows) - most)]


def more(count: int) -> list[RenderableType]:
    """Return a line about rows that are not shown, nothing if there is none."""
    return [Text(f"  and {count:,} more", style="dim")] if count > 0 else []


def took(seconds: float) -> Text:
    """Return the last line of an answer: its duration, under an empty line."""
    return Text(f"\n{duration(seconds)}", style="dim")


def listed(names: Sequence[str], most: int) -> str:
    """Return names in a line; those beyond ``most`` are counted."""
    return ", ".join(map(plain, names[:most])) + (f", {len(names) - most:,} more" if len(names) > most else "")
