"""A self-contained HTML file: no script, and no font or picture from the network."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Sequence
from importlib.resources import files
from itertools import groupby
from typing import NamedTuple

from placeopt.benchmark.figure import Figure
from placeopt.readable import amount
from placeopt.report.html.comparison import SAME, results_link
from placeopt.report.html.inline_svg import inline_svg
from placeopt.report.html.result_table import Cell, ResultTable, named, shown

MOST_ROWS = 200
"""Rows of numbers shown on the page; the linked CSV has all."""
STYLE = files("placeopt.report.html").joinpath("page.css").read_text(encoding="utf-8")
COLOUR = re.compile("#[0-9A-Fa-f]{6}")
VERDICTS = {"better": "▲ better", "worse": "▼ worse"}


class Fact(NamedTuple):
    """A line of the table of inputs: seeds, limits, assumptions, results."""

    name: str
    value: str


def page(
    title: str,
    command: str,
    facts: Sequence[Fact],
    figures: Sequence[Figure],
    tables: Sequence[ResultTable] = (),
    results: Sequence[ResultTable] = (),
) -> str:
    """
    Return the file's text.

    Tables come first, then the facts, then the figures, each as SVG with its first ``MOST_ROWS`` rows and a link to all
    of them as CSV. ``results``: Stored in the page, for comparisons with other pages.
    """
    headings = [*((table.name, table.title) for table in tables), ("inputs", "Inputs")]
    headings += [(figure.name, figure.title) for figure in figures]
    contents = "".join(f'<li><a href="#{name}">{html.escape(words)}</a></li>' for name, words in headings)
    link = f"<p>All results, for comparison with other reports: {results_link(results)}</p>" if results else ""
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        '<meta name="color-scheme" content="light dark">',
        f"<title>{html.escape(title)}</title><style>{STYLE}</style></head><body>",
        f"<header><h1>{html.escape(title)}</h1>",
        f"<p><code>{html.escape(command)}</code></p></header>",
        f'<nav aria-label="Contents"><ul>{contents}</ul></nav><main>',
        *map(_table_section, tables),
        f'<section><h2 id="inputs">Inputs</h2>{_facts(facts)}{link}</section>',
        *map(_figure_section, figures),
        "</main></body></html>",
    ]
    return "\n".join(parts) + "\n"


def _scroll(label: str, inside: str) -> str:
    """Return a box that scrolls sideways by itself, also by the keyboard."""
    return f'<div class="scroll" role="region" tabindex="0" aria-label="{html.escape(label)}">{inside}</div>'


def _facts(facts: Sequence[Fact]) -> str:
    rows = "".join(
        f'<tr><th scope="row">{html.escape(fact.name)}</th><td>{html.escape(fact.value)}</td></tr>' for fact in facts
    )
    return f'<table class="facts">{rows}</table>'


def _table_section(table: ResultTable) -> str:
    name = html.escape(table.name)
    return (
        f'<section><h2 id="{name}">{html.escape(table.title)}</h2>'
        f"<p>{html.escape(table.caption)}</p>{_scroll(table.title, _table(table))}</section>"
    )


def _table(table: ResultTable) -> str:
    """Return a table of results: one unit of time, the best of each column in bold, rows of one first key together."""
    unit = table.time_unit()
    best = [table.best(i) for i in range(len(table.columns))]
    numeric = [any(isinstance(row[i], int | float) for row in table.rows) for i in range(len(table.columns))]
    groups = [(first, list(rows)) for first, rows in groupby(table.rows, key=lambda row: row[0])]
    skipped = int(table.keys > 1 and len({str(first) for first, _ in groups}) == len(groups) < len(table.rows))
    if not skipped:
        groups = [(None, list(table.rows))]
    head = "".join(
        f'<th scope="col"{_number(numeric[i])}>{html.escape(named(column, unit))}</th>'
        for i, column in enumerate(table.columns[skipped:], skipped)
    )
    bodies = []
    for first, rows in groups:
        lines = [_row(table, row, skipped, unit, best, numeric) for row in rows]
        if skipped:
            span = f'colspan="{len(table.columns) - 1}" scope="rowgroup"'
            lines.insert(0, f"<tr>{_row_head(table, first, span)}</tr>")
        bodies.append(f"<tbody>{''.join(lines)}</tbody>")
    star = "<p>* Not all jobs ended: these are figures of a part of the jobs.</p>" if table.partial else ""
    return f"<table><thead><tr>{head}</tr></thead>{''.join(bodies)}</table>{star}"


def _row(
    table: ResultTable,
    row: Sequence[Cell],
    skipped: int,
    unit: tuple[float, str],
    best: Sequence[Cell],
    numeric: Sequence[bool],
) -> str:
    """Return a row without its first ``skipped`` cells; the next one is its head."""
    partial = str(row[0]) in table.partial
    cells = [_row_head(table, row[skipped], 'scope="row"')]
    for i, (cell, column) in enumerate(zip(row, table.columns, strict=True)):
        if i <= skipped:
            continue
        words = html.escape(shown(cell, column, unit))
        if partial and isinstance(cell, float):
            words += "*"
        if best[i] is not None and cell == best[i] and not partial:
            words = f"<strong>{words}</strong>"
        verdict = f' class="{cell}"' if cell in VERDICTS else ""
        words = VERDICTS.get(str(cell), words)
        cells.append(f"<td{verdict or _number(numeric[i])}>{words}</td>")
    same = ' class="same"' if row[-1] == SAME else ""
    return f"<tr{same}>{''.join(cells)}</tr>"


def _row_head(table: ResultTable, cell: Cell, scope: str) -> str:
    colour = table.colours.get(str(cell), "")
    chip = f'<span class="chip" style="background:{colour}"></span>' if COLOUR.fullmatch(colour) else ""
    return f"<th {scope}>{chip}{html.escape(str(cell))}</th>"


def _number(numeric: bool) -> str:
    return ' class="number"' if numeric else ""


def _figure_section(figure: Figure) -> str:
    data = base64.b64encode(figure.csv().encode()).decode()
    title, panels = html.escape(figure.title), figure.panels()
    head = "".join(f'<th scope="col">{html.escape(cell)}</th>' for cell in figure.header)
    rows = "".join(
        "<tr>" + "".join(f"<td>{html.escape(_cell(cell))}</td>" for cell in row) + "</tr>"
        for row in figure.rows[:MOST_ROWS]
    )
    numbers = f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
    more = f"<p>{len(figure.rows) - MOST_ROWS:,} more in the CSV.</p>" if len(figure.rows) > MOST_ROWS else ""
    drawn = "".join(f'<div class="panel">{inline_svg(panel)}</div>' for panel in panels)
    box = _scroll(f"Figure: {figure.title}", f'<div class="panels">{drawn}</div>' if len(panels) > 1 else drawn)
    return (
        f'<section><h2 id="{figure.name}">{title}</h2>\n'
        f'<figure aria-labelledby="{figure.name}">{box}'
        f"<figcaption>{html.escape(figure.caption)}</figcaption></figure>\n"
        f"<details><summary>Numbers: {title}</summary>"
        f'<p><a download="{figure.name}.csv" href="data:text/csv;base64,{data}">{figure.name}.csv</a></p>'
        f"{_scroll(f'Numbers: {figure.title}', numbers)}{more}</details></section>"
    )


def _cell(value: object) -> str:
    return amount(value, 6) if isinstance(value, float) else str(value)
