"""The summary of a plan that ``solve`` prints: quality, costs, waiting jobs with reasons, and times."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from placeopt.readable import duration
from placeopt.report.text.headline import headline
from placeopt.report.text.palette import BAD, GOOD
from placeopt.report.text.plan_tables import cost_table, standing_table, waiting_table
from placeopt.report.text.text import number, plural
from placeopt.report.text.text_table import TextTable, heading

if TYPE_CHECKING:
    from rich.console import RenderableType

    from placeopt.model import Plan

OUTCOMES = {"improved": GOOD, "proved": GOOD, "failed": BAD}
BLANK = Text("")


def plan_summary(plan: Plan, *, total_s: float | None = None) -> list[RenderableType]:
    """
    Return the whole summary.

    Parameters
    ----------
    plan
        Any valid plan.
    total_s
        Seconds of the whole command, for plans that state none (deterministic ones).
    """
    sections: list[list[RenderableType]] = [
        headline(plan),
        [_jobs(plan)],
        waiting_table(plan),
        standing_table(plan),
        cost_table(plan),
        _stages(plan),
    ]
    parts: list[RenderableType] = []
    for section in sections:
        if section:
            parts.extend([*section, BLANK])
    return [*parts, _times(plan, total_s)]


def _jobs(plan: Plan) -> Text:
    running = plan.facts.get("jobs_running", 0)
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
    return (
        [heading("Stages"), TextTable(columns, rows, wrap="what it did", drop=["what it did", "bound", "objective"])]
        if rows
        else []
    )


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
        f"  {', '.join(phrases)}" if phrases else "  deterministic: the log has the times", style="not bold dim"
    )
