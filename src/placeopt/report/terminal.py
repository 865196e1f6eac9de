"""A view on a terminal: the answer in colour, its figures, notes and tables, as wide as the terminal is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from placeopt.readable import plain
from placeopt.report.text.palette import BAD, GOOD, SO_SO
from placeopt.report.text.text_table import TextTable, heading, more
from placeopt.view import words

if TYPE_CHECKING:
    from rich.console import RenderableType

    from placeopt.view import Table, View

COLOURS = {"good": GOOD, "bad": BAD, "open": SO_SO, "": "bold"}


def view_page(view: View) -> list[RenderableType]:
    """Return what is printed of a view, part by part, with an empty line between parts."""
    title = Text(plain(view.title), style=COLOURS[view.verdict])
    proof = [Text(plain(view.proof), style="dim")] if view.proof else []
    notes = [Text(plain(note), style="dim") for note in view.notes]
    parts: list[RenderableType] = [title, *proof, *notes]
    if view.figures:
        rows = [[figure.name, words(figure.value, figure.unit)] for figure in view.figures]
        parts += [Text(""), TextTable(["", ">"], rows)]
    for table in view.tables:
        if table.rows and table.shown:
            parts += [Text(""), *_table(table)]
    return parts


def _table(table: Table) -> list[RenderableType]:
    """Return a table under its heading; the column of the longest texts is folded where the terminal is narrow."""
    rows = [
        [words(cell, column.unit) for cell, column in zip(row, table.columns, strict=True)]
        for row in table.rows[: table.shown]
    ]
    numeric = [all(not isinstance(row[i], str) for row in table.rows) for i in range(len(table.columns))]
    names = [column.name for column in table.columns]
    headers = [f">{name}" if right else name for name, right in zip(names, numeric, strict=True)]
    widest = max(range(len(names)), key=lambda i: 0 if numeric[i] else max(len(row[i]) for row in rows))
    moved = [name for i, name in enumerate(names) if i >= table.keys and i != widest][::-1]
    made = TextTable(headers, rows, wrap=names[widest], drop=moved)
    return [heading(table.name, table.note), made, *more(len(table.rows) - table.shown)]
