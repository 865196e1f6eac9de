"""A placement under review, as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from placeopt.readable import duration
from placeopt.report.text.palette import BAD, GOOD
from placeopt.report.text.text import number, percent, plain, plural
from placeopt.report.text.text_table import TextTable, heading

if TYPE_CHECKING:
    from rich.console import RenderableType

    from placeopt.whatif.answers import Review, SingleMove

SHOWN = 20
NODES = 4


def review_page(found: Review) -> list[RenderableType]:
    """Return broken rules, distance from the best plan, costs by term, and the moves that help most."""
    if not found.valid:
        title = Text("breaks rules", style=BAD).append(f": {plural(found.count, 'violation')}", style="not bold")
        rows = [[text] for text in found.violations[:SHOWN]]
        more = [Text(f"  ... and {found.count - len(rows):,} more")] if found.count > len(rows) else []
        return [title, TextTable([""], rows, wrap=""), *more, Text(f"\n{duration(found.seconds)}", style="dim")]
    parts: list[RenderableType] = [Text("keeps every rule", style=GOOD), Text("")]
    rows = [
        ["value", number(found.value), number(found.best_value), number(found.value_bound), percent(found.value_gap)]
    ]
    if found.cost is not None:
        rows.append(["cost", number(found.cost), number(found.best_cost), number(found.cost_bound), _cost_gap(found)])
    parts.append(TextTable(["", ">this plan", ">best found", ">bound", ">from the bound"], rows))
    if found.terms:
        table_rows = [
            [t.name, number(t.raw), number(t.best_raw), t.unit, number(t.weight * (t.raw - t.best_raw))]
            for t in found.terms
        ]
        parts += [Text(""), heading("Costs", "raw, and what the difference weighs")]
        parts.append(TextTable(["term", ">this plan", ">best found", "unit", ">difference"], table_rows, wrap="unit"))
    note = f"{plural(found.jobs_tried, 'job')} tried" + ("" if found.all_tried else "; time was over before all were")
    parts += [Text(""), heading("Moves that help most", f"each while all other jobs stay; {note}")]
    if found.moves:
        table_rows = [
            [one.kind, one.job, _where(one), number(one.gain_value), number(one.gain_cost)] for one in found.moves
        ]
        parts.append(TextTable(["", "job", "to", ">value gained", ">cost saved"], table_rows, wrap="to"))
    else:
        parts.append(Text("  none"))
    return [*parts, Text(f"\n{duration(found.seconds)}", style="dim")]


def _cost_gap(found: Review) -> str:
    """Return the gap of the cost; a dash for plans of different value, whose costs do not compare."""
    if found.cost is None or found.cost_bound is None or found.value != found.best_value:
        return "-"
    return percent(abs(found.cost - found.cost_bound) / max(1, abs(found.cost)))


def _where(one: SingleMove) -> str:
    names = [plain(node) if workers == 1 else f"{plain(node)} x {workers}" for node, workers in one.nodes.items()]
    return ", ".join(names[:NODES]) + (f", {len(names) - NODES:,} more" if len(names) > NODES else "")
