"""The cost level, term by term."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from placeopt.report.text.text import number, percent
from placeopt.report.text.text_table import TextTable, heading

if TYPE_CHECKING:
    from rich.console import RenderableType

    from placeopt.model import Plan


class Term(TypedDict):
    """What a term costs: raw, times its weight, as a share of the level and of the term's own worst case."""

    term: str
    raw: int
    unit: str
    weight: int
    cost: int
    share: float | None
    of_worst: float | None


def cost_facts(plan: Plan) -> list[Term]:
    """Return the terms of the cost level in the policy's order."""
    total = sum(cost.raw * cost.weight for cost in plan.costs.values())
    return [
        Term(
            term=name,
            raw=cost.raw,
            unit=cost.unit,
            weight=cost.weight,
            cost=cost.raw * cost.weight,
            share=cost.raw * cost.weight / total if total else None,
            of_worst=cost.raw / cost.worst if cost.worst else None,
        )
        for name, cost in plan.costs.items()
    ]


def cost_table(plan: Plan) -> list[RenderableType]:
    """Return the table of terms; nothing if the policy counts no cost."""
    rows = [
        [
            term["term"],
            number(term["raw"]),
            term["unit"],
            percent(term["of_worst"]),
            number(term["weight"]),
            number(term["cost"]),
            percent(term["share"]),
        ]
        for term in cost_facts(plan)
    ]
    columns = ["term", ">raw", "unit", ">of worst", ">x weight", ">= cost", ">share"]
    return (
        [heading("Cost"), TextTable(columns, rows, wrap="unit", drop=["x weight", "of worst", "unit"])] if rows else []
    )
