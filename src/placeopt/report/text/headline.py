"""The first lines of a plan's summary: its status, objective, bounds and gaps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.padding import Padding
from rich.text import Text

from placeopt.report.text.palette import BAD, GOOD, SO_SO
from placeopt.report.text.text import gpus, number, percent, plain
from placeopt.report.text.text_table import TextTable

if TYPE_CHECKING:
    from rich.console import RenderableType

    from placeopt.model import Plan
    from placeopt.model.plan import Level

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
    parts.append(TextTable(["", ">reached", ">bound", ">gap", "of"], rows, wrap="of", drop=["of"]))
    if plan.bound_relaxes:
        parts.append(Text(f"  The bound leaves out: {plain('; '.join(plan.bound_relaxes))}.", style="dim"))
    return parts


def _status(plan: Plan) -> Text:
    text = Text()
    if plan.status == "optimal":
        return text.append("optimal", style=GOOD).append(": no better plan exists")
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
        proven = "its bound comes once the value is proven" if level.name == "cost" else "no bound known"
    else:
        proven = "the more the better" if level.sense == "max" else "the less the better"
    return [level.name, number(level.objective), number(level.bound), percent(gap), proven]


def _gpu_milli(plan: Plan) -> list[str] | None:
    """Return the line about GPU share, for plans that state it."""
    facts = plan.facts
    if "gpu_milli_placed" not in facts or "gpu_milli_bound" not in facts:
        return None
    placed, bound = facts["gpu_milli_placed"], facts["gpu_milli_bound"]
    asked, capacity = facts.get("gpu_milli_asked"), facts.get("gpu_milli_capacity")
    of = [] if asked is None else [f"{number(asked)} demanded"]
    if capacity is not None:
        of.append(f"{gpus(capacity)} {'GPU' if capacity == 1000 else 'GPUs'} there")
    return ["GPU-milli", number(placed), number(bound), percent(abs(bound - placed) / max(1, placed)), ", ".join(of)]
