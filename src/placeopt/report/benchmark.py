"""Benchmarks as text: what ran and with which verdict, and which sets there are."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, get_args

from rich.text import Text

from placeopt.benchmark.records import Row, Verdict
from placeopt.report.tables import Rows
from placeopt.report.text import number, plain, plural

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import RenderableType

    from placeopt.benchmark.sets import Item
    from placeopt.formats.solu import Known

VERDICTS = get_args(Verdict)
SHOWN = 10
"""Cases that went wrong listed before the rest is counted."""


def counts_page(rows: Sequence[Row], total: int, out: str, left_out: Sequence[str]) -> list[RenderableType]:
    """Return verdicts by solver, and the cases that failed or were aborted by name."""
    parts: list[RenderableType] = [Text(f"{len(rows):,} of {plural(total, 'case')} in {plain(out)}")]
    counts = _counts(rows)
    cells = [
        [name, *(number(count[word]) if count[word] else "" for word in VERDICTS)] for name, count in counts.items()
    ]
    parts.append(Rows(["solver", *(f">{word}" for word in VERDICTS)], cells, wrap="solver"))
    wrong = [row for row in rows if row.verdict in ("fail", "abort")]
    if wrong:
        told = [
            [row.verdict, row.case.instance, row.case.solver, str(row.case.seed), _cause(row)] for row in wrong[:SHOWN]
        ]
        parts += [Text(""), Rows(["", "instance", "solver", ">seed", "cause"], told, wrap="cause")]
        if len(wrong) > SHOWN:
            parts.append(Text(f"  ... and {len(wrong) - SHOWN:,} more"))
    if left_out:
        parts.append(Text(f"Left out, since no instance is of their kind: {plain(', '.join(left_out))}.", style="dim"))
    return parts


def counts_json(rows: Sequence[Row], total: int, out: str) -> str:
    """Return the same as a JSON document."""
    counts = {name: {word: count[word] for word in VERDICTS} for name, count in _counts(rows).items()}
    return json.dumps({"out": out, "cases": total, "rows": len(rows), "verdicts": counts}, indent=2)


def sets_page(sets: Mapping[str, Sequence[Item]], known: Mapping[str, Sequence[Known]]) -> list[RenderableType]:
    """Return the named sets: how many instances, of which kind, and what is known of them."""
    cells = [
        [
            name,
            number(len(items)),
            ", ".join(sorted({item.kind for item in items})),
            number(sum(one.optimal for one in known[name])),
            number(sum(one.value is not None for one in known[name])),
        ]
        for name, items in sets.items()
    ]
    return [Rows(["set", ">instances", "kind", ">optimum known", ">value known"], cells, wrap="kind")]


def sets_json(sets: Mapping[str, Sequence[Item]], known: Mapping[str, Sequence[Known]]) -> str:
    """Return the same as a JSON document, instances by name."""
    return json.dumps(
        {
            name: [
                {"name": item.name, "path": str(item.path), "kind": item.kind, "value": one.value, "bound": one.bound}
                for item, one in zip(items, known[name], strict=True)
            ]
            for name, items in sets.items()
        },
        indent=2,
    )


def _counts(rows: Sequence[Row]) -> dict[str, Counter[str]]:
    counts: dict[str, Counter[str]] = {}
    for row in rows:
        counts.setdefault(row.case.solver, Counter())[row.verdict] += 1
    return counts


def _cause(row: Row) -> str:
    return "; ".join(row.answer.refused) or row.answer.message or "contradicts what is known"
