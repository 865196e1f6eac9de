"""The summary of a plan: status, objective, bounds and gaps, costs, exceeded limits, waiting jobs, and times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.padding import Padding
from rich.text import Text

from placeopt.readable import duration, gpus, number, of_reading, percent, plain, plural
from placeopt.report.text.palette import BAD, GOOD, SO_SO
from placeopt.report.text.text_table import TextTable, section

if TYPE_CHECKING:
    from rich.console import RenderableType

    from placeopt.model import Plan
    from placeopt.model.plan import Level


OUTCOMES = {"improved": GOOD, "proved": GOOD, "failed": BAD}


def plan_summary(plan: Plan, *, total_s: float | None = None, verbose: bool = False) -> list[RenderableType]:
    """
    Return the whole summary.

    ``total_s``: Seconds of the command, for plans that state none (deterministic ones). ``verbose``: With the stages.
    """
    blocks: list[list[RenderableType]] = [
        headline(plan),
        [_jobs(plan)],
        waiting_table(plan),
        standing_table(plan),
        cost_table(plan),
        _stages(plan) if verbose else [],
    ]
    parts: list[RenderableType] = []
    for block in filter(None, blocks):
        parts += [*block, Text("")]
    return [*parts, _times(plan, total_s)]


def _jobs(plan: Plan) -> Text:
    running = plan.facts.get("jobs_running", 0) - len(plan.preempted)
    text = Text(f"{plural(len(plan.placements), 'job')} placed", style="bold")
    if running:
        text.append(f" ({number(running)} of them ran before)", style="not bold")
    text.append(f", {number(len(plan.unplaced))} waiting", style="bold")
    changes = [("moved", plan.moved), ("shrunk", plan.shrunk), ("preempted", plan.preempted)]
    phrases = [f"{number(len(jobs))} {what}" for what, jobs in changes if jobs]
    return text.append(f"; {', '.join(phrases)}", style="not bold") if phrases else text


def _stages(plan: Plan) -> list[RenderableType]:
    rows: list[list[str | Text]] = [
        [
            stage.name,
            Text(stage.outcome, style=OUTCOMES.get(stage.outcome, "none")),
            number(stage.objective),
            number(stage.bound),
            duration(stage.seconds),
            stage.detail,
        ]
        for stage in plan.stages
    ]
    columns = ["stage", "outcome", ">objective", ">bound", ">time", "what it did"]
    return section("Stages", columns, rows, wrap="what it did", drop=["what it did", "bound", "objective"])


def _times(plan: Plan, total_s: float | None) -> Text:
    phases = plan.seconds
    total = phases.total if phases.total is not None else total_s
    text = Text(f"{duration(total)} in all", style="bold")
    phrases = [
        f"{name} {duration(spent)}"
        for name, spent in (
            ("read", phases.read),
            ("compile", phases.compile),
            ("solve", phases.solve),
            ("check", phases.check),
        )
        if spent is not None
    ]
    return text.append(
        f"  {', '.join(phrases)}" if phrases else "  deterministic plans state no times", style="not bold dim"
    )


LIMITS = {
    "time": "stopped by the time limit",
    "work": "stopped by the work limit",
    "size": "too large for the exact stages",
    "memory": "stopped by the memory limit",
    "user": "stopped by the user",
}


def headline(plan: Plan) -> list[RenderableType]:
    """Return name and status, then one line each for value, GPU share and cost level with bounds and gaps."""
    title = Text(plain(plan.instance.name), style="bold")
    title.append(f"  policy {plain(plan.policy.name)}", style="not bold dim")
    parts: list[RenderableType] = [title, Padding(_status(plan), (0, 0, 1, 0))]
    rows = [_level(level) for level in plan.levels]
    milli = _gpu_milli(plan)
    if milli is not None:
        rows.insert(1, milli)
    parts.append(TextTable(["", ">reached", ">bound", ">gap", "remark"], rows, wrap="remark", drop=["remark"]))
    if plan.bound_relaxes:
        parts.append(Text(f"  The bound leaves out: {plain('; '.join(plan.bound_relaxes))}.", style="dim"))
    return parts


def _status(plan: Plan) -> Text:
    text = Text()
    if plan.status == "optimal":
        text.append("optimal", style=GOOD).append(": no better plan exists")
        return text if plan.of == "cluster" else text.append(f"; {of_reading(plan.unread)}")
    level = next((level.name for level in plan.levels if level.bound != level.objective), "value")
    if plan.gap is None:
        text.append("feasible", style=BAD).append(f": keeps every rule; how good its {level} can be is not proven")
    else:
        text.append("feasible", style=SO_SO)
        text.append(f": keeps every rule, {level} within {percent(plan.gap)} of the bound")
    return text.append(f"; {LIMITS[plan.limit]}") if plan.limit in LIMITS else text


def _level(level: Level) -> list[str]:
    gap = None if level.bound is None else abs(level.bound - level.objective) / max(1, abs(level.objective))
    if level.bound == level.objective:
        proven = "proven"
    elif level.bound is None:
        proven = "no bound known"
    else:
        proven = "the more the better" if level.sense == "max" else "the less the better"
    return [level.name, number(level.objective), number(level.bound), percent(gap), proven]


def _gpu_milli(plan: Plan) -> list[str] | None:
    """
    Return the line about GPU share, for plans that state it.

    Its gap is the part of the bound that is not placed: the most valuable plan may hold next to none of the GPUs.
    """
    facts = plan.facts
    if "gpu_milli_placed" not in facts or "gpu_milli_bound" not in facts:
        return None
    placed, bound = facts["gpu_milli_placed"], facts["gpu_milli_bound"]
    asked, capacity = facts.get("gpu_milli_asked"), facts.get("gpu_milli_capacity")
    of = [] if asked is None else [f"{number(asked)} demanded"]
    if capacity is not None:
        of.append(f"the cluster has {gpus(capacity)} {'GPU' if capacity == 1000 else 'GPUs'}")
    return ["GPU-milli", number(placed), number(bound), percent((bound - placed) / max(1, bound)), ", ".join(of)]


STANDING_SHOWN = 10
"""Exceeded limits listed before the rest is counted."""
DETAILS = 3
"""Details shown of each reason."""

MEANING = {
    "conflict": "does not fit, even alone",
    "outvoted": "fits, but others are worth as much or more in its place",
    "postponed": "better later than now",
    "policy": "its queue or the policy keeps it back",
    "not_reached": "time ended before it was tried",
}


def cost_facts(plan: Plan) -> list[dict[str, Any]]:
    """Return the terms of the cost level in the policy's order."""
    total = sum(cost.raw * cost.weight for cost in plan.costs.values())
    return [
        {
            "term": name,
            "raw": cost.raw,
            "unit": cost.unit,
            "weight": cost.weight,
            "cost": cost.raw * cost.weight,
            "share": cost.raw * cost.weight / total if total else None,
            "of_worst": cost.raw / cost.worst if cost.worst else None,
        }
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
    return section("Cost", columns, rows, wrap="unit", drop=["x weight", "of worst", "unit"])


def standing_table(plan: Plan) -> list[RenderableType]:
    """Return one line per limit that running jobs exceed; nothing if there is none."""
    rows = [[entry.rule, entry.detail] for entry in plan.standing[:STANDING_SHOWN]]
    if len(plan.standing) > STANDING_SHOWN:
        rows.append(["", f"and {plural(len(plan.standing) - STANDING_SHOWN, 'other')}"])
    note = "as before the round; nothing starts that would add to it"
    return section("Exceeded by running jobs", ["limit", "by how much"], rows, note=note, wrap="by how much")


def waiting_facts(plan: Plan) -> list[dict[str, Any]]:
    """Return the reasons of a plan's waiting jobs, most frequent first."""
    by_reason: dict[str, dict[str, dict[str, Any]]] = {}
    for job in plan.unplaced:
        details = by_reason.setdefault(job.reason, {})
        details.setdefault(job.detail, {"detail": job.detail, "jobs": 0, "for_example": job.job})["jobs"] += 1
    reasons = [
        {
            "reason": reason,
            "jobs": sum(detail["jobs"] for detail in details.values()),
            "details": sorted(details.values(), key=lambda detail: -detail["jobs"]),
        }
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
    return section("Waiting jobs", [">jobs", "reason", "why"], rows, wrap="why")
