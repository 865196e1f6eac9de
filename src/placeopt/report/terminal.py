"""A view on a terminal: the answer in colour, its figures, notes and tables, as wide as the terminal is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from placeopt.readable import plain
from placeopt.report.text.gpu_map import gpu_map
from placeopt.report.text.palette import BAD, BLOCKS, GOOD, SO_SO, Glyphs
from placeopt.report.text.text_table import TextTable, heading, more
from placeopt.view import words

if TYPE_CHECKING:
    from rich.console import RenderableType

    from placeopt.view import Table, View

COLOURS = {"good": GOOD, "bad": BAD, "open": SO_SO, "": "bold"}
NOTE = 300
"""Characters of a note before it is cut; files and pages have all of it."""


def view_page(view: View, *, glyphs: Glyphs = BLOCKS, width: int = 100) -> list[RenderableType]:
    """
    Return what is printed of a view, part by part, with an empty line between parts.

    Parameters
    ----------
    view
        The answer. Of its charts a terminal draws maps.
    glyphs
        Characters of the map.
    width
        Columns of the map.

    Returns
    -------
    list
        What rich prints.
    """
    title = Text(plain(view.title), style=COLOURS[view.verdict])
    proof = [Text(plain(view.proof), style="dim")] if view.proof else []
    notes = [Text(_cut(plain(" ".join(note.split()))), style="dim") for note in view.notes]
    parts: list[RenderableType] = [title, *proof, *notes]
    if view.figures:
        rows = [[figure.name, words(figure.value, figure.unit)] for figure in view.figures]
        parts += [Text(""), TextTable(["", ">"], rows)]
    for table in view.tables:
        if view.chart is not None and (view.chart.kind, view.chart.table) == ("map", table.name) and table.rows:
            parts += [Text(""), *gpu_map(table, view.chart, glyphs, width=width)]
        elif table.rows and table.shown:
            parts += [Text(""), *_table(table)]
    return parts


def _cut(note: str) -> str:
    return note if len(note) <= NOTE else f"{note[: NOTE - 1]}…"


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
