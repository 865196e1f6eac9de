"""Two answers to a question beside each other, as an answer: what is better, worse, or other than before."""

from __future__ import annotations

from typing import NamedTuple

from placeopt.errors import BadInput
from placeopt.readable import percent, plural
from placeopt.view.cells import words
from placeopt.view.records import Better, Cell, Column, Figure, Table, Unit, View

COLUMNS = tuple(Column(name=name) for name in ("of", "figure", "before", "after", "change", "which is"))


class _Said(NamedTuple):
    """A cell or a figure of a view."""

    value: Cell
    unit: Unit
    better: Better


def compare(before: View, after: View) -> View:
    """
    Return what became better, worse, or other from one answer to another.

    Figures are paired by name; cells by table, the cells that name their row, and column.

    Raises
    ------
    BadInput
        If the two have nothing in common.
    """
    old, new = _all_of(before), _all_of(after)
    both = [key for key in new if key in old]
    if not both:
        raise BadInput(
            f"nothing to compare: {before.title!r} and {after.title!r} have no figure and no row of one name; expected "
            "two answers to one question"
        )
    rows = [(*key, *_change(old[key], new[key])) for key in both if old[key].value != new[key].value]
    better, worse = (sum(row[-1] == verdict for row in rows) for verdict in ("better", "worse"))
    counts = {
        "figures that both have": len(both),
        "better": better,
        "worse": worse,
        "other": len(rows) - better - worse,
    }
    counts |= {"only before": len(old) - len(both), "only after": len(new) - len(both)}
    return View(
        title=f"{plural(better, 'figure')} better, {worse:,} worse, {len(both) - len(rows):,} the same",
        verdict="bad" if worse else "good" if better else "",
        figures=tuple(Figure(name=name, value=count) for name, count in counts.items()),
        notes=tuple(dict.fromkeys((f"before: {before.title}", f"after: {after.title}", *before.notes, *after.notes))),
        tables=(Table(name="What changed", columns=COLUMNS, keys=2, rows=tuple(rows)),),
    )


def _all_of(view: View) -> dict[tuple[str, str], _Said]:
    """
    Return (table and row, column) -> what is said there; figures stand in no row.

    A table that a chart alone shows, such as the cells of a map, is left out.
    """
    said = {("", one.name): _Said(one.value, one.unit, one.better) for one in view.figures}
    charted = "" if view.chart is None else view.chart.table
    for table in view.tables:
        if table.name == charted and not table.shown:
            continue
        for row in table.rows:
            name = ": ".join([table.name, *(words(cell) for cell in row[: table.keys])])
            for column, cell in zip(table.columns[table.keys :], row[table.keys :], strict=True):
                said[name, column.name] = _Said(cell, column.unit, column.better)
    return said


def _change(old: _Said, new: _Said) -> tuple[str, str, str, str]:
    """Return both as words, what lies between them, and which of the two is the better one."""
    texts = words(old.value, old.unit), words(new.value, new.unit)
    if not (isinstance(old.value, int | float) and isinstance(new.value, int | float)):
        return *texts, "", "other"
    difference = new.value - old.value
    verdict = "other" if not new.better else "better" if (difference < 0) == (new.better == "less") else "worse"
    if new.unit == "fraction":
        return *texts, f"{100 * difference:+.1f} points", verdict
    sign = "+" if difference > 0 else "-"
    return *texts, f"{sign}{percent(abs(difference / old.value))}" if old.value else "", verdict
