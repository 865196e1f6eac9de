"""The limits that running jobs exceed, as before the round."""

from __future__ import annotations

from typing import TYPE_CHECKING

from placeopt.report.text.text import plural
from placeopt.report.text.text_table import TextTable, heading

if TYPE_CHECKING:
    from rich.console import RenderableType

    from placeopt.model import Plan

SHOWN = 10


def standing_table(plan: Plan) -> list[RenderableType]:
    """Return a line each, the first of many; nothing if nothing stands."""
    if not plan.standing:
        return []
    rows = [[entry.rule, entry.detail] for entry in plan.standing[:SHOWN]]
    if len(plan.standing) > SHOWN:
        rows.append(["", f"and {plural(len(plan.standing) - SHOWN, 'other')}"])
    title = heading("Exceeded by running jobs", "as before the round; nothing starts that would add to it")
    return [title, TextTable(["limit", "by how much"], rows, wrap="by how much")]
