"""Step curves as small multiples: one panel a curve, common axes, one unit of time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from placeopt.benchmark.figure import COLOURS, Draw, Figure, Tips
from placeopt.readable import DAY_S, HOUR_S, time_unit

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Points = Sequence[tuple[float, float]]
UNITS_S = {"seconds": 1.0, "minutes": 60.0, "hours": HOUR_S, "days": DAY_S}
"""Labels of an axis of time, and their seconds."""
PANEL_INCHES, WIDE_INCHES = (3.7, 2.1), (5.0, 2.6)
"""Size of one of several panels, and of a single one."""
MOST_POINTS = 600
"""Points of a curve that are drawn one by one; of more, means and extremes of as many groups."""
BEHIND = "#999999"
"""Colour of the curves that a panel's own is compared with."""


def step_figure(
    name: str,
    title: str,
    caption: str,
    curves: Mapping[str, Points],
    labels: tuple[str, str],
    *,
    colours: Mapping[str, str] | None = None,
    before: Mapping[str, Points] | None = None,
    most: tuple[float, str] | None = None,
) -> Figure:
    """
    Return a figure with a panel for each curve, and the others grey behind it.

    ``curves``: Points (x, y) by label, x ascending. ``labels``: Of the axes: what x is in, what y counts. A unit of
    time becomes the one that suits the longest curve. ``before``: Curves by the same labels, drawn behind in place of
    the other ones. ``most``: A line at what cannot be exceeded, and its name.
    """
    shown = [*curves.values(), *(before or {}).values()]
    longest = max([x for points in shown for x, _ in points], default=0.0)
    highest = max([y for points in shown for _, y in points], default=0.0)
    unit, scale = labels[0], 1.0
    if unit in UNITS_S:
        seconds, name_of_unit = time_unit(longest * UNITS_S[unit])
        unit, scale = name_of_unit, UNITS_S[unit] / seconds
    drawn = {label: [(scale * x, y) for x, y in points] for label, points in curves.items()}
    earlier = {label: [(scale * x, y) for x, y in points] for label, points in (before or {}).items()}
    integers = all(y == int(y) for points in shown for _, y in points)

    def panel(label: str, number: int) -> Draw:
        def draw(axes: Axes) -> Tips:
            from matplotlib.ticker import MaxNLocator

            others = [points for other, points in drawn.items() if other != label]
            for points in [earlier[label]] if label in earlier else [] if before else others:
                _steps(axes, points, BEHIND, behind=True)
            _steps(axes, drawn[label], (colours or {}).get(label, COLOURS[number % len(COLOURS)]))
            if most is not None:
                axes.axhline(most[0], color="#000000", linestyle=":", linewidth=0.8)
            axes.set_title(label, loc="left", fontsize=9, fontweight="bold")
            axes.set_xlabel(unit)
            axes.set_ylabel(labels[1])
            axes.set_xlim(0, scale * longest or 1)
            axes.set_ylim(0, 1.05 * max(highest, most[0] if most else 0) or 1)
            if integers:
                axes.yaxis.set_major_locator(MaxNLocator(integer=True))
            return {}

        return draw

    notes = [] if most is None else [f"Dotted: {most[1]}."]
    notes += ["Grey: before."] if before else ["Grey: the other panels."] if len(curves) > 1 else []
    rows = [(label, x, y) for label, points in drawn.items() for x, y in points]
    header = ("log", unit.replace(" ", "_"), labels[1].replace(" ", "_"))
    draws = {label: panel(label, number) for number, label in enumerate(drawn)}
    inches = PANEL_INCHES if len(draws) > 1 else WIDE_INCHES
    return Figure(name, title, " ".join([caption, *notes]), inches, draws, header, rows, keys=2)


def _steps(axes: Axes, points: Points, colour: str, *, behind: bool = False) -> None:
    """Draw a curve; one of many points as the mean of each group, with a band from its least to its largest value."""
    if not points:
        return
    at, low, mean, high = grouped(points)
    width, order = (0.7, 1) if behind else (1.3, 3)
    axes.step(at, mean, where="post", color=colour, linewidth=width, zorder=order)
    if not behind and len(at) < len(points):
        axes.fill_between(at, low, high, step="post", color=colour, alpha=0.3, linewidth=0, zorder=2)


def grouped(points: Points) -> tuple[list[float], list[float], list[float], list[float]]:
    """
    Return x, least, mean and largest y of at most ``MOST_POINTS`` groups of points that follow each other.

    A point holds until the next one; the mean is weighted by how long each holds.
    """
    if len(points) <= MOST_POINTS:
        at, values = ([float(point[i]) for point in points] for i in (0, 1))
        return at, values, values, values
    x, y = np.asarray(points, dtype=float).T
    starts = np.linspace(0, len(x), MOST_POINTS, endpoint=False).astype(int)
    long = np.append(np.diff(x), 0.0)
    total, held = np.add.reduceat(long, starts), np.add.reduceat(long * y, starts)
    last = y[np.append(starts[1:], len(y)) - 1]
    mean = np.where(total > 0, held / np.where(total > 0, total, 1.0), last)
    mean[-1] = y[-1]
    low, high = np.minimum.reduceat(y, starts), np.maximum.reduceat(y, starts)
    return x[starts].tolist(), low.tolist(), mean.tolist(), high.tolist()
