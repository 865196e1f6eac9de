"""The look of all tables: no frames, a quiet header, numbers to the right."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from placeopt.report.text import plain

Align = Literal["left", "right"]


def table(columns: Sequence[str], rows: Iterable[Sequence[str | Text]], *, wrap: str = "") -> Padding:
    """
    Lay out rows under quiet headers, indented by two.

    Parameters
    ----------
    columns
        Headers; one that starts with ``>`` is aligned to the right.
    rows
        Cells; plain strings are made printable.
    wrap
        The column that gives way in a narrow terminal; its text is folded into lines. The others are never cut.
    """
    grid = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", pad_edge=False, show_edge=False)
    for column in columns:
        name = column.removeprefix(">")
        grid.add_column(
            Text(name),
            justify="right" if column.startswith(">") else "left",
            no_wrap=name != wrap,
            overflow="fold",
        )
    for row in rows:
        grid.add_row(*(cell if isinstance(cell, Text) else Text(plain(cell)) for cell in row))
    return Padding(grid, (0, 0, 0, 2))


def heading(title: str, note: str = "") -> Text:
    """Return a section's heading with a quiet note behind it."""
    text = Text(plain(title), style="bold")
    return text.append(f"  {plain(note)}", style="not bold dim") if note else text
