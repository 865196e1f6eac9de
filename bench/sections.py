"""Sections and tables of the page of results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from history import Cells
from spec import Row


def section(title: str, words: str, rows: Iterable[Row], columns: Sequence[str], lines: Sequence[Cells]) -> str:
    """Return a headline with its table and the commits of its rows; nothing if there are no results."""
    commits = ", ".join(dict.fromkeys((row["commit"] or "unknown")[:9] for row in rows))
    return f"\n## {title}\n\n{words}\n{table(columns, lines)}\nMeasured at commit {commits}.\n" if lines else ""


def span(values: Iterable[float]) -> str:
    """Return the least and the greatest of some numbers."""
    least, most = min(known := list(values)), max(known)
    return f"{least:,g}" if least == most else f"{least:,g} to {most:,g}"


def table(columns: Sequence[str], lines: Iterable[Cells]) -> str:
    """Return a table in Markdown; numbers stand at the right."""
    rows = [[text_of(cell) for cell in line] for line in lines]
    bars = ("---:" if is_numeric(row[number] for row in rows) else "---" for number in range(len(columns)))
    return "".join(f"| {' | '.join(row)} |\n" for row in (columns, list(bars), *rows))


def text_of(cell: str | float | None) -> str:
    """Return a cell of a table."""
    return "" if cell is None else f"{cell:,}" if isinstance(cell, int) else str(cell)


def is_numeric(cells: Iterable[str]) -> bool:
    """Tell whether every cell with something in it begins with a digit or a sign."""
    return all(not cell or cell[0] in "-0123456789" for cell in cells)
