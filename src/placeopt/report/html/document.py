"""A self-contained HTML file: no script, and no font or picture from the network."""

from __future__ import annotations

import base64
import html
from collections.abc import Sequence
from typing import NamedTuple

from placeopt.formats.figure import Figure, render
from placeopt.readable import amount

MOST_ROWS = 200
"""Rows of numbers shown on the page; the linked CSV has all."""
STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 1100px; margin: 2em auto; padding: 0 1em; color: #222; }
h1 { font-size: 1.5em; } h2 { font-size: 1.15em; margin-top: 2em; }
figure { margin: 0; overflow-x: auto; } figure svg { max-width: 100%; height: auto; }
figcaption { color: #555; } table { border-collapse: collapse; font-size: 0.85em; }
th, td { text-align: left; padding: 0.15em 0.8em 0.15em 0; border-bottom: 1px solid #ddd; vertical-align: top; }
code { background: #f4f4f4; padding: 0.1em 0.3em; }
"""


class Fact(NamedTuple):
    """A line of the table at the top of the page: seeds, limits, assumptions, results."""

    name: str
    value: str


def page(title: str, command: str, facts: Sequence[Fact], figures: Sequence[Figure]) -> str:
    """Return the file's text; each figure is SVG with its first ``MOST_ROWS`` rows and a link to all of them as CSV."""
    parts = [
        "<!doctype html>",
        '<html lang="en"><head><meta charset="utf-8">',
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{html.escape(title)}</title><style>{STYLE}</style></head><body>",
        f"<h1>{html.escape(title)}</h1>",
        f"<p><code>{html.escape(command)}</code></p>",
        "<table>",
        *(f"<tr><th>{html.escape(fact.name)}</th><td>{html.escape(fact.value)}</td></tr>" for fact in facts),
        "</table>",
        *(_section(figure) for figure in figures),
        "</body></html>",
    ]
    return "\n".join(parts) + "\n"


def _section(figure: Figure) -> str:
    svg = render(figure, "svg").decode()
    svg = svg[svg.index("<svg") :]
    data = base64.b64encode(figure.csv().encode()).decode()
    head = "".join(f"<th>{html.escape(cell)}</th>" for cell in figure.header)
    rows = "".join(
        "<tr>" + "".join(f"<td>{html.escape(_cell(cell))}</td>" for cell in row) + "</tr>"
        for row in figure.rows[:MOST_ROWS]
    )
    more = f"<p>{len(figure.rows) - MOST_ROWS:,} more in the CSV.</p>" if len(figure.rows) > MOST_ROWS else ""
    return (
        f"<h2>{html.escape(figure.title)}</h2>\n<figure>{svg}<figcaption>{html.escape(figure.caption)}</figcaption></figure>\n"
        f'<details><summary>Numbers</summary><p><a download="{figure.name}.csv" '
        f'href="data:text/csv;base64,{data}">{figure.name}.csv</a></p><table><tr>{head}</tr>{rows}</table>{more}</details>'
    )


def _cell(value: object) -> str:
    return amount(value, 6) if isinstance(value, float) else str(value)
