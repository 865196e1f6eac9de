"""The figure of failures: a square per scenario with its name, jobs displaced and jobs that lose their place."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

from placeopt.benchmark.figure import Figure, Tips, ink_on
from placeopt.readable import plural
from placeopt.whatif.answers import Failure, Failures

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = {"survives": "#009E73", "loses jobs": "#D55E00", "open": "#F0E442"}
ANSWERS = {
    "yes": "all jobs that run there find another place",
    "no": "some failure costs jobs their place",
    "unknown": "not every case is decided",
}
MOST_NAMED = 160
"""Number of scenarios up to which each square names what fails."""
ACROSS = 8


def failures_figure(answer: Failures, name: str) -> Figure:
    """Return a figure with a square per scenario; pairs as a matrix of the domains that fail together."""
    rows = [
        ("+".join(s.domains), s.displaced, s.lost, s.lost_at_least, s.lost_gpu_milli / 1000, verdict(s))
        for s in answer.scenarios
    ]
    names = sorted({domain for s in answer.scenarios for domain in s.domains})
    draw, inches = _matrix(answer, name, rows, names) if answer.k == 2 else _squares(name, rows)
    asked = f"N+{answer.k} by {answer.level}" if answer.asked is None else answer.condition
    return Figure(
        name,
        f"{asked[0].upper()}{asked[1:]}: {ANSWERS[answer.answer]}",
        "A square is a scenario; in it, jobs displaced and, where any, how many of them find no other place.",
        inches,
        draw,
        ("failing", "displaced", "lost", "lost_at_least", "lost_gpus", "verdict"),
        rows,
    )


def verdict(failure: Failure) -> str:
    """Return the outcome of a failure in a word."""
    return {True: "survives", False: "loses jobs", None: "open"}[failure.survives]


FailureRow = tuple[str, int, int, int, float, str]
Drawing = tuple[Callable[["Axes"], Tips], tuple[float, float]]
"""The drawing function and the size in inches."""


def _tip(row: FailureRow) -> str:
    return f"{row[0]}: {plural(row[1], 'job')} displaced, {row[2]} of them lose their place, at least {row[3]}"


def _count(row: FailureRow) -> str:
    return f"{row[1]}, {row[2]} lost" if row[2] else str(row[1])


def _squares(name: str, rows: list[FailureRow]) -> Drawing:
    """Return the drawing of scenarios in lines."""
    named = len(rows) <= MOST_NAMED
    across = min(max(1, len(rows)), ACROSS) if named else math.isqrt(2 * len(rows)) + 1
    deep = -(-len(rows) // across) or 1

    def draw(axes: Axes) -> Tips:
        from matplotlib.patches import Rectangle

        tips = {}
        for i, row in enumerate(rows):
            gid, x, y = f"{name}-{i}", i % across, i // across
            axes.add_patch(Rectangle((x, y), 0.94, 0.9, facecolor=COLOURS[row[5]], gid=gid))
            tips[gid] = _tip(row)
            if named:
                short = row[0] if len(row[0]) <= 16 else f"{row[0][:15]}…"
                axes.text(
                    x + 0.47,
                    y + 0.45,
                    f"{short}\n{_count(row)}",
                    ha="center",
                    va="center",
                    fontsize=7,
                    color=ink_on(COLOURS[row[5]]),
                )
        _frame(axes, rows, across, deep)
        axes.axis("off")
        return tips

    inches = (1.15 * across + 0.2, 0.42 * deep + 0.9) if named else (8.0, 8.0 * deep / across + 0.9)
    return draw, (max(4.0, inches[0]), max(1.2, inches[1]))


def _matrix(answer: Failures, name: str, rows: list[FailureRow], names: list[str]) -> Drawing:
    """Return the drawing of pairs of domains as a matrix."""
    side = len(names)
    at = {domain: i for i, domain in enumerate(names)}

    def draw(axes: Axes) -> Tips:
        from matplotlib.patches import Rectangle

        tips = {}
        for i, (scenario, row) in enumerate(zip(answer.scenarios, rows, strict=True)):
            gid, (x, y) = f"{name}-{i}", sorted(at[domain] for domain in scenario.domains)
            axes.add_patch(Rectangle((x, y), 0.94, 0.94, facecolor=COLOURS[row[5]], gid=gid))
            tips[gid] = _tip(row)
            if side <= 2 * ACROSS:
                text = _count(row).replace(", ", "\n")
                axes.text(x + 0.47, y + 0.47, text, ha="center", va="center", fontsize=7, color=ink_on(COLOURS[row[5]]))
        _frame(axes, rows, side, side)
        axes.set_aspect("equal")
        if side <= 5 * ACROSS:
            axes.set_xticks([i + 0.47 for i in range(side)], names, rotation=90, fontsize=7)
            axes.set_yticks([i + 0.47 for i in range(side)], names, fontsize=7)
        else:
            axes.axis("off")
        return tips

    return draw, (min(12.0, 0.42 * side + 1.5), min(11.0, 0.42 * side + 1.5))


def _frame(axes: Axes, rows: list[FailureRow], across: int, deep: int) -> None:
    """Set the limits of the axes and a legend of the verdicts that occur."""
    from matplotlib.patches import Patch

    axes.set_xlim(0, across)
    axes.set_ylim(deep, 0)
    seen = [word for word in COLOURS if any(row[5] == word for row in rows)]
    axes.legend(
        handles=[Patch(facecolor=COLOURS[word], label=word) for word in seen],
        loc="lower left",
        bbox_to_anchor=(-0.01, 1),
        ncols=len(COLOURS),
        frameon=False,
    )
