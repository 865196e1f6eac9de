"""Two sets of results, before and after a change; and results inside a page, so that pages can be compared."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Sequence
from dataclasses import asdict
from typing import NamedTuple

from pydantic import TypeAdapter, ValidationError

from placeopt.errors import BadInput
from placeopt.readable import percent, plural
from placeopt.report.html.result_table import Cell, Column, ResultTable, named, shown

RESULTS = "results.json"
LINK = re.compile(rf'download="{re.escape(RESULTS)}" href="data:application/json;base64,([A-Za-z0-9+/=]*)"')
ALL_ROWS = 60
"""Figures up to which equal ones are listed too."""
SAME = "same"
MEASURED_FACTOR = 2
"""From this factor on a measured time per decision is better or worse: two runs of one command differ by less."""


class Change(NamedTuple):
    """A figure before and after."""

    key: tuple[str, ...]
    column: Column
    before: Cell
    after: Cell

    @property
    def verdict(self) -> str:
        """``better``, ``worse`` or ``same``; ``changed`` if neither is better."""
        if self.before == self.after:
            return SAME
        if not (self.column.better and isinstance(self.before, int | float) and isinstance(self.after, int | float)):
            return "changed"
        if self.column.unit == "decision_s" and (
            max(self.before, self.after) < MEASURED_FACTOR * min(self.before, self.after)
        ):
            return "changed"
        return "better" if (self.after < self.before) == (self.column.better == "less") else "worse"

    @property
    def words(self) -> str:
        """The change, relative where that says something."""
        if not (isinstance(self.before, int | float) and isinstance(self.after, int | float)):
            return "-"
        difference = self.after - self.before
        share = self.column.unit == "share"
        if not difference:
            return "0 points" if share else "0 %"
        if share:
            return f"{100 * difference:+.1f} points"
        sign = "+" if difference > 0 else "-"
        return "-" if not self.before else sign + percent(abs(difference / self.before))


def changes(before: ResultTable, after: ResultTable) -> list[Change]:
    """Return the figures of rows that both tables have; a single row on each side is a pair whatever its keys."""
    at = {column.name: i for i, column in enumerate(before.columns)}
    earlier = {_key(before, row): row for row in before.rows}
    alone = len(before.rows) == len(after.rows) == 1
    out = []
    for row in after.rows:
        other = before.rows[0] if alone else earlier.get(_key(after, row))
        if other is None:
            continue
        key = _key(after, row)
        if alone and _key(before, other) != key:
            key = (*key[:-1], f"{_key(before, other)[-1]} → {key[-1]}")
        out += [
            Change(key, column, other[at[column.name]], row[i])
            for i, column in enumerate(after.columns)
            if i >= after.keys and column.name in at
        ]
    return out


def _key(table: ResultTable, row: Sequence[Cell]) -> tuple[str, ...]:
    return tuple(str(cell) for cell in row[: table.keys])


def comparisons(before: Sequence[ResultTable], after: Sequence[ResultTable]) -> list[ResultTable]:
    """Return a table of changes for each pair of tables of one name."""
    earlier = {table.name: table for table in before}
    return [_compared(earlier[table.name], table) for table in after if table.name in earlier]


def _compared(before: ResultTable, after: ResultTable) -> ResultTable:
    unit = after.time_unit()
    found = [change for change in changes(before, after) if not change.before is change.after is None]
    listed = [change for change in found if len(found) <= ALL_ROWS or change.verdict != SAME]
    count = {word: sum(change.verdict == word for change in found) for word in ("better", "worse", "changed", SAME)}
    totals = ", ".join(f"{number:,} {word}" for word, number in count.items() if number) or "nothing in common"
    alone = (len(before.rows) - len({c.key for c in found}), len(after.rows) - len({c.key for c in found}))
    notes = [
        f"{plural(number, 'row')} only {side}."
        for number, side in zip(alone, ("before", "after"), strict=True)
        if number > 0
    ]
    partial = sorted(before.partial | after.partial)
    if partial:
        notes.append(f"Not all jobs ended under {', '.join(partial)}: means over other jobs do not compare.")
    title = f"Before and after: {after.title}" + ("" if before.title == after.title else f" (before: {before.title})")
    rows = [
        (
            *change.key,
            named(change.column, unit),
            shown(change.before, change.column, unit),
            shown(change.after, change.column, unit),
            change.words,
            change.verdict,
        )
        for change in listed
    ]
    keys = tuple(after.columns[: after.keys])
    columns = (*keys, *map(Column, ("figure", "before", "after", "change", "verdict")))
    return ResultTable(
        f"change-{after.name}",
        title,
        " ".join([f"{totals.capitalize()}.", *notes]),
        columns,
        rows,
        keys=len(keys) + 1,
        colours=after.colours,
    )


def results_link(tables: Sequence[ResultTable]) -> str:
    """Return a link with the results inside, from which `read_results` restores them."""
    records = [{**asdict(table), "partial": sorted(table.partial)} for table in tables]
    data = base64.b64encode(json.dumps(records).encode()).decode()
    return f'<a download="{RESULTS}" href="data:application/json;base64,{data}">{RESULTS}</a>'


def read_results(page: str, source: str) -> list[ResultTable]:
    """Return the results inside a page; raises `BadInput` if it has none."""
    link = LINK.search(page)
    if link is None:
        raise BadInput(f"{source}: no results in it; expected a page that 'placeopt report' wrote")
    try:
        return TypeAdapter(list[ResultTable]).validate_json(base64.b64decode(link[1], validate=True))
    except (binascii.Error, ValidationError, ValueError) as error:
        raise BadInput(f"{source}: its {RESULTS} does not hold results ({type(error).__name__}: {error})") from None
