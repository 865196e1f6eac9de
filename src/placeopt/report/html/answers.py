"""Figures of what-if answers, by the type of the answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from placeopt.benchmark.figure import COLOURS, Figure, Tips
from placeopt.explain.records import QueueExplanation
from placeopt.readable import amount, plural
from placeopt.report.html.failures import failures_figure
from placeopt.report.html.whatif_amounts import (
    added_figure,
    cheapest_figure,
    fit_figure,
    prices_figure,
    review_figure,
    slots_figure,
    swap_figure,
)
from placeopt.simulation.replay.goals import parse_goal
from placeopt.simulation.replay.series import ReplaySeries
from placeopt.whatif.answers import (
    Cheapest,
    Defrag,
    Failures,
    Fit,
    NodesNeeded,
    Prices,
    Review,
    Slots,
    Swap,
    Sweep,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes


UNITS = {"demand": "demand, % of the GPUs", "nodes": "nodes more", "quota": "quota, GPUs", "arrivals": "arrivals, %"}
"""Axis label of what is varied."""


def axis_label(varied: str) -> str:
    """Return the axis label of what is varied: ``nodes:minsky`` is ``nodes more of minsky``."""
    what, _, name = varied.partition(":")
    return UNITS.get(what, what) + (f" of {name}" if name else "")


def sweep_figure(answer: Sweep, name: str) -> Figure:
    """Return the figure of GPUs placed at every setting, with a band up to the bound."""
    points = sorted(answer.points, key=lambda point: point.setting)
    rows = [
        (p.setting, p.outcome.gpu_milli_placed / 1000, p.outcome.gpu_milli_bound / 1000, p.outcome.jobs_waiting)
        for p in points
    ]

    def draw(axes: Axes) -> Tips:
        settings = [row[0] for row in rows]
        axes.fill_between(
            settings,
            [row[1] for row in rows],
            [row[2] for row in rows],
            color=COLOURS[5],
            alpha=0.4,
            label="to the bound",
        )
        axes.plot(settings, [row[1] for row in rows], marker="o", color=COLOURS[0], label="placed")
        axes.set_xlabel(axis_label(answer.varied))
        axes.set_ylabel("GPUs")
        axes.legend(frameon=False)
        return {}

    return Figure(
        name,
        f"Sweep: {answer.varied}",
        "GPU share placed at each setting; no plan places more than the band's upper edge.",
        (5.0, 3.0),
        draw,
        ("setting", "gpus_placed", "gpus_bound", "jobs_waiting"),
        rows,
    )


def curve_figure(answer: ReplaySeries, name: str) -> Figure:
    """Return the figure of the measure at every setting of a trace, with a confidence band if arrivals were drawn."""
    rows = [(s.setting, s.nodes, s.mean, s.low, s.high, s.stranded, s.met) for s in answer.spots]
    known = [(i, s) for i, s in enumerate(answer.spots) if s.mean is not None]
    number = all(s.setting.isdecimal() for s in answer.spots)

    def draw(axes: Axes) -> Tips:
        at = {i: float(s.setting) if number else float(i) for i, s in enumerate(answer.spots)}
        places = [at[i] for i, _ in known]
        low, high = ([value or 0.0 for _, s in known for value in [getattr(s, end)]] for end in ("low", "high"))
        if answer.draws:
            axes.fill_between(places, low, high, color=COLOURS[5], alpha=0.4, label="95 % of the mean")
        axes.plot(places, [s.mean or 0.0 for _, s in known], color=COLOURS[0], linewidth=1 if number else 0)
        tips = {}
        for i, s in known:
            axes.plot([at[i]], [s.mean or 0.0], marker="o", color=COLOURS[0], gid=f"{name}-{i}")
            tips[f"{name}-{i}"] = f"{s.setting}: {amount(s.mean)} {answer.unit}, {plural(s.nodes, 'node')}"
        if answer.goal is not None:
            limit = parse_goal(answer.goal).limit
            axes.axhline(limit, color=COLOURS[6], linestyle=":", label=answer.goal)
        if number:
            axes.locator_params(axis="x", integer=True)
        else:
            axes.set_xticks(range(len(answer.spots)), [s.setting for s in answer.spots])
        axes.set_xlabel(axis_label(answer.replayed))
        axes.set_ylabel(f"{answer.measure} ({answer.unit})" if answer.unit else answer.measure)
        axes.set_ylim(bottom=0)
        if answer.draws or answer.goal is not None:
            axes.legend(frameon=False)
        return tips

    drawn = f" Mean over {len(answer.draws)} draws of arrivals." if answer.draws else ""
    return Figure(
        name,
        f"Replay: {answer.replayed} on {answer.scenario} under {answer.policy}",
        f"Measured by simulation, not proven.{drawn}",
        (5.0, 3.0),
        draw,
        ("setting", "nodes", answer.measure, "low", "high", "stranded", "met"),
        rows,
    )


def front_figure(answer: Defrag, name: str) -> Figure:
    """Return the figure of empty domains against moves."""
    front = sorted(answer.front, key=lambda point: point.freed)
    rows = [(p.freed, len(p.moves), p.at_least, ", ".join(p.domains)) for p in front]

    def draw(axes: Axes) -> Tips:
        tips = {}
        freed = [row[0] for row in rows]
        axes.fill_between(freed, [row[2] for row in rows], [row[1] for row in rows], color=COLOURS[5], alpha=0.4)
        axes.plot(freed, [row[1] for row in rows], color=COLOURS[0], linewidth=1)
        for i, row in enumerate(rows):
            axes.plot([row[0]], [row[1]], marker="o", color=COLOURS[0], gid=f"{name}-{i}")
            tips[f"{name}-{i}"] = f"{row[0]} empty by {row[1]} moves, at least {row[2]}: {row[3]}"
        axes.axvline(answer.most, color=COLOURS[6], linestyle=":")
        axes.locator_params(integer=True)
        axes.set_xlabel(f"{answer.level}s empty (at most {answer.most})")
        axes.set_ylabel("moves")
        return tips

    return Figure(
        name,
        f"Defragmentation: {answer.level}s emptied by moves",
        "Moves of each point found; fewer than the band's lower edge do not do, proven.",
        (5.0, 3.0),
        draw,
        ("empty", "moves", "moves_at_least", "domains"),
        rows,
    )


def queue_figure(answer: QueueExplanation, name: str) -> Figure:
    """Return the figure of the jobs that wait for each reason, and of those that each change would start."""
    waits = [(f"{one.reason}: {one.detail}", one.jobs) for one in answer.reasons[:MOST_BARS]]
    starts = [(one.change, one.jobs_together) for one in answer.changes[:MOST_BARS]]
    bars = [(text, jobs, COLOURS[1]) for text, jobs in waits] + [(text, jobs, COLOURS[0]) for text, jobs in starts]

    def draw(axes: Axes) -> Tips:
        for i, (text, jobs, colour) in enumerate(bars):
            axes.barh(i, jobs, color=colour, height=0.4)
            axes.text(0, i - 0.28, f"{jobs:,}  {text}", va="bottom", ha="left", fontsize=9)
        axes.set_ylim(len(bars), -1)
        axes.set_yticks([])
        axes.set_xlabel("jobs")
        return {}

    return Figure(
        name,
        f"Queue: why {plural(answer.waiting, 'job')} wait{'s' * (answer.waiting == 1)}",
        "Orange: jobs that wait for a reason. Blue: jobs that one change would let start together, found by greedy.",
        (8.0, 0.9 + 0.45 * max(1, len(bars))),
        draw,
        ("kind", "text", "jobs"),
        [("reason", text, jobs) for text, jobs in waits] + [("change", text, jobs) for text, jobs in starts],
    )


MOST_BARS = 12
WhatIfAnswer = (
    Fit
    | Slots
    | Failures
    | NodesNeeded
    | Cheapest
    | Sweep
    | Swap
    | Prices
    | Defrag
    | Review
    | ReplaySeries
    | QueueExplanation
)
DRAWN: dict[type, tuple[str, Callable[[Any, str], Figure]]] = {
    Fit: ("fit", fit_figure),
    Slots: ("slots", slots_figure),
    Failures: ("failures", failures_figure),
    NodesNeeded: ("add", added_figure),
    Cheapest: ("cheapest", cheapest_figure),
    Sweep: ("sweep", sweep_figure),
    Swap: ("swap", swap_figure),
    Prices: ("prices", prices_figure),
    Defrag: ("front", front_figure),
    Review: ("audit", review_figure),
    ReplaySeries: ("replay", curve_figure),
    QueueExplanation: ("queue", queue_figure),
}
"""Type of answer -> name of its figure, and the function that makes it."""
ANSWER_FIELDS: tuple[tuple[frozenset[str], type[WhatIfAnswer]], ...] = (
    (frozenset({"replayed", "spots"}), ReplaySeries),
    (frozenset({"varied", "points"}), Sweep),
    (frozenset({"front", "level"}), Defrag),
    (frozenset({"scenarios", "k"}), Failures),
    (frozenset({"node_type", "tried"}), NodesNeeded),
    (frozenset({"choices", "best"}), Cheapest),
    (frozenset({"exchanged", "before"}), Swap),
    (frozenset({"prices", "value"}), Prices),
    (frozenset({"gangs", "most"}), Fit),
    (frozenset({"counts", "free_gpus"}), Slots),
    (frozenset({"valid", "count"}), Review),
    (frozenset({"waiting", "reasons", "changes"}), QueueExplanation),
)
"""Fields that identify a type of answer."""


def answer_type(keys: set[str]) -> type[WhatIfAnswer] | None:
    """Return the type of answer of a document with these fields; None if it is no answer."""
    return next((kind for fields, kind in ANSWER_FIELDS if fields <= keys), None)


def answer_figures(answer: WhatIfAnswer, number: int) -> list[Figure]:
    """Return the figures of one answer; ``number`` makes their names unique."""
    name, draw = DRAWN[type(answer)]
    return [draw(answer, f"{name}-{number}")]
