"""Tables of a plan: its cost term by term, the limits that running jobs exceed, the jobs that wait by reason."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from placeopt.report.text.text import number, percent, plural
from placeopt.report.text.text_table import TextTable, heading

if TYPE_CHECKING:
    from rich.console import RenderableType

    from placeopt.model import Plan

STANDING_SHOWN = 10
"""Exceeded limits listed before the rest is counted."""
DETAILS = 3
"""Details shown of each reason."""

MEANING = {
    "conflict": "does not fit, even alone",
    "outvoted": "fits, but others are worth more in its place",
    "postponed": "better later than now",
    "policy": "its queue or the policy keeps it back",
    "not_reached": "time ended before it was tried",
}


class Term(TypedDict):
    """The cost of a term: raw, times its weight, as a share of the level and of the term's own worst case."""

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


def standing_table(plan: Plan) -> list[RenderableType]:
    """Return one line per limit that running jobs exceed; nothing if there is none."""
    if not plan.standing:
        return []
    rows = [[entry.rule, entry.detail] for entry in plan.standing[:STANDING_SHOWN]]
    if len(plan.standing) > STANDING_SHOWN:
        rows.append(["", f"and {plural(len(plan.standing) - STANDING_SHOWN, 'other')}"])
    title = heading("Exceeded by running jobs", "as before the round; nothing starts that would add to it")
    return [title, TextTable(["limit", "by how much"], rows, wrap="by how much")]


class Detail(TypedDict):
    """A sentence of the referee or a stage, the number of jobs that share it, and one of them."""

    detail: str
    jobs: int
    for_example: str


class Reason(TypedDict):
    """A reason to wait, its number of jobs, and their details, most frequent first."""

    reason: str
    jobs: int
    details: list[Detail]


def waiting_facts(plan: Plan) -> list[Reason]:
    """Return the reasons of a plan's waiting jobs, most frequent first."""
    by_reason: dict[str, dict[str, Detail]] = {}
    for job in plan.unplaced:
        details = by_reason.setdefault(job.reason, {})
        details.setdefault(job.detail, Detail(detail=job.detail, jobs=0, for_example=job.job))["jobs"] += 1
    reasons = [
        Reason(
            reason=reason,
            jobs=sum(detail["jobs"] for detail in details.values()),
            details=sorted(details.values(), key=lambda detail: -detail["jobs"]),
        )
        for reason, details in by_reason.items()
    ]
    return sorted(reasons, key=lambda reason: (-reason["jobs"], reason["reason"]))


def waiting_table(plan: Plan) -> list[RenderableType]:
    """Return one line per reason and below it its most frequent details; nothing if no job waits."""
    rows: list[list[str]] = []
    for reason in waiting_facts(plan):
        rows.append([number(reason["jobs"]), reason["reason"], MEANING.get(reason["reason"], "")])
        shown = DETAILS if len(reason["details"]) > DETAILS + 1 else DETAILS + 1  # never one line for "1 other"
        rows.extend(
            ["", f"{detail['jobs']:>7,}", f"{detail['detail']} (such as {detail['for_example']})"]
            for detail in reason["details"][:shown]
            if detail["detail"]
        )
        if rest := reason["details"][shown:]:
            jobs = sum(detail["jobs"] for detail in rest)
            rows.append(["", f"{jobs:>7,}", f"{plural(len(rest), 'other detail')}"])
    return [heading("Waiting jobs"), TextTable([">jobs", "reason", "why"], rows, wrap="why")] if rows else []
