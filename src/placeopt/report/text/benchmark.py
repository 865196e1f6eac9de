"""Benchmarks as text: verdicts of a run, named sets, report tables, findings of a check."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, get_args

from rich.text import Text

from placeopt.benchmark.figure import can_draw
from placeopt.benchmark.journal import Row, Verdict
from placeopt.benchmark.scored_cases import NO_ANSWER
from placeopt.benchmark.table import readable
from placeopt.readable import number, plain, plural
from placeopt.report.text.text_table import TextTable, heading

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import RenderableType

    from placeopt.benchmark.rechecked import RecheckedRow
    from placeopt.benchmark.report import BenchmarkReport
    from placeopt.benchmark.sets import SetEntry
    from placeopt.benchmark.solu import Known
    from placeopt.benchmark.table import Table

VERDICTS = get_args(Verdict)
SHOWN = 10
"""Wrong cases listed before the rest is counted."""


def counts_page(rows: Sequence[Row], total: int, out: str, left_out: Sequence[str]) -> list[RenderableType]:
    """Return verdicts by solver, and the cases that failed, were aborted or are unsupported."""
    parts: list[RenderableType] = [Text(f"{len(rows):,} of {plural(total, 'case')} in {plain(out)}")]
    counts = _counts(rows)
    cells = [
        [name, *(number(count[word]) if count[word] else "" for word in VERDICTS)] for name, count in counts.items()
    ]
    parts.append(TextTable(["solver", *(f">{word}" for word in VERDICTS)], cells, wrap="solver"))
    wrong = sorted((row for row in rows if row.verdict in NO_ANSWER), key=lambda row: NO_ANSWER.index(row.verdict))
    if wrong:
        table_rows = [
            [row.verdict, row.case.instance, row.case.solver, str(row.case.seed), _cause(row)] for row in wrong[:SHOWN]
        ]
        parts += [Text(""), TextTable(["", "instance", "solver", ">seed", "cause"], table_rows, wrap="cause")]
        if len(wrong) > SHOWN:
            parts.append(Text(f"  ... and {len(wrong) - SHOWN:,} more"))
    if left_out:
        parts.append(Text(f"Left out, since no instance is of their kind: {plain(', '.join(left_out))}.", style="dim"))
    return parts


def counts_json(rows: Sequence[Row], total: int, out: str) -> str:
    """Return the same as a JSON document."""
    counts = {name: {word: count[word] for word in VERDICTS} for name, count in _counts(rows).items()}
    return json.dumps({"out": out, "cases": total, "rows": len(rows), "verdicts": counts}, indent=2)


def sets_page(sets: Mapping[str, Sequence[SetEntry]], known: Mapping[str, Sequence[Known]]) -> list[RenderableType]:
    """Return the named sets: number and kind of their instances, and how many values are known."""
    cells = [
        [
            name,
            number(len(items)),
            ", ".join(sorted({item.kind for item in items})),
            number(sum(record.optimal for record in known[name])),
            number(sum(record.value is not None for record in known[name])),
        ]
        for name, items in sets.items()
    ]
    return [TextTable(["set", ">instances", "kind", ">optimum known", ">value known"], cells, wrap="kind")]


def sets_json(sets: Mapping[str, Sequence[SetEntry]], known: Mapping[str, Sequence[Known]]) -> str:
    """Return the same as a JSON document, instances by name."""
    return json.dumps(
        {
            name: [
                {
                    "name": item.name,
                    "path": str(item.path),
                    "kind": item.kind,
                    "value": record.value,
                    "bound": record.bound,
                }
                for item, record in zip(items, known[name], strict=True)
            ]
            for name, items in sets.items()
        },
        indent=2,
    )


def report_page(report: BenchmarkReport, folder: str, files: int) -> list[RenderableType]:
    """Return the tables that fit a terminal; the others are in the report's files."""
    parts: list[RenderableType] = []
    for table in report.tables:
        if table.name.split("-")[0] in ("summary", "comparison") and table.rows:
            parts += [heading(table.title), _rows(table), Text("")]
    drawn = "" if report.draws else "; plots need matplotlib: pip install 'placeopt[plot]'" * (not can_draw())
    return [*parts, Text(f"{plural(files, 'file')} in {plain(folder)}; begin with report.md{drawn}", style="dim")]


def tables_json(report: BenchmarkReport) -> str:
    """Return conditions and tables as a JSON document."""
    tables = {t.name: [dict(zip(t.columns, row, strict=True)) for row in t.rows] for t in report.tables}
    return json.dumps({"conditions": report.conditions, "tables": tables}, indent=2)


def checked_page(
    checked: Sequence[RecheckedRow], new: Mapping[str, Known], solu: str, *, updated: bool
) -> list[RenderableType]:
    """Return the faults found, and the known values that the rows improve."""
    wrong = [row for row in checked if row.faults]
    title = (
        f"ok: {plural(len(checked), 'row')} checked"
        if not wrong
        else f"not ok: {len(wrong):,} of {plural(len(checked), 'row')}"
    )
    parts: list[RenderableType] = [Text(title)]
    if wrong:
        table_rows = [
            [row.row.case.instance, row.row.case.solver, str(row.row.case.seed), row.faults[0]] for row in wrong[:SHOWN]
        ]
        parts.append(TextTable(["instance", "solver", ">seed", "wrong"], table_rows, wrap="wrong"))
        if len(wrong) > SHOWN:
            parts.append(Text(f"  ... and {len(wrong) - SHOWN:,} more"))
    if new:
        said = f"written to {plain(solu)}" if updated else "--update writes them"
        rows = [[name, number(entry.value), number(entry.bound)] for name, entry in sorted(new.items())]
        parts += [Text(""), heading("Better than known", said), TextTable(["instance", ">value", ">bound"], rows)]
    return parts


def checked_json(checked: Sequence[RecheckedRow], new: Mapping[str, Known], *, updated: bool) -> str:
    """Return the same as a JSON document."""
    return json.dumps(
        {
            "ok": not any(row.faults for row in checked),
            "rows": len(checked),
            "wrong": [{"case": row.row.case.key, "faults": row.faults} for row in checked if row.faults],
            "better": {name: {"value": entry.value, "bound": entry.bound} for name, entry in new.items()},
            "updated": updated and bool(new),
        },
        indent=2,
    )


def _rows(table: Table) -> TextTable:
    if table.name.startswith("comparison"):
        return _intervals(table)
    numeric = [all(not isinstance(row[i], str) for row in table.rows) for i in range(len(table.columns))]
    columns = [f">{name}" if right else name for name, right in zip(table.columns, numeric, strict=True)]
    cells = [[readable(cell) for cell in row] for row in table.rows]
    return TextTable(columns, cells, wrap=table.columns[0], drop=("spent s", "PAR2 s", "primal s"))


def _intervals(table: Table) -> TextTable:
    """Return a comparison, each interval in one cell."""
    cells = []
    for row in table.rows:
        solver, instances, ratio, ratio_low, ratio_high, gap, gap_low, gap_high, *counts = map(readable, row)
        spans = (f"{ratio}  [{ratio_low}, {ratio_high}]", f"{gap}  [{gap_low}, {gap_high}]")
        cells.append([solver, instances, *spans, " / ".join(counts)])
    columns = ["solver", ">instances", ">time ratio", ">gap points", ">wins / ties / losses"]
    return TextTable(columns, cells, wrap="solver", drop=("instances",))


def _counts(rows: Sequence[Row]) -> dict[str, Counter[str]]:
    counts: dict[str, Counter[str]] = {}
    for row in rows:
        counts.setdefault(row.case.solver, Counter())[row.verdict] += 1
    return counts


def _cause(row: Row) -> str:
    return "; ".join(row.answer.refused) or row.answer.message or "contradicts what is known"
