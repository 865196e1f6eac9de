"""Figures of a benchmark: performance profile, shares of cases by gap, mean gap over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import cycle
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple

from placeopt.benchmark.comparison import by_solver, gap_shares, profiles
from placeopt.benchmark.figure import COLOURS, STYLES, Figure, Tips
from placeopt.benchmark.metrics import height_at
from placeopt.benchmark.scored_cases import ScoredCase

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Curves = Mapping[str, Sequence[tuple[float, float]]]
"""Solver -> points (x, y), x ascending; the best solver first."""
INCHES = (8.0, 4.0)
FRONT = 6
"""Coloured curves besides the baseline's: more cannot be told apart."""
BACKGROUND = "#BBBBBB"
TIMES = 200
"""Intervals between the points of the mean gap over time."""


CAPTIONS = {
    "profile": "Share of cases proven within so many times the fastest solver's time; higher is better",
    "gaps": "Share of cases that end within a gap to the best known value; higher is better",
    "course": "Mean gap to the best known value over time; lower is better",
}


class Scales(NamedTuple):
    """Scales of the axes; below ``x_from`` and ``y_from`` a ``symlog`` axis is linear, so that it holds 0."""

    x: str = "linear"
    x_from: float = 0.0
    y: str = "linear"
    y_from: float = 0.0


SCALES = {
    "profile": Scales(x="log"),
    "gaps": Scales(x="symlog", x_from=0.1),
    "course": Scales(x="log", y="symlog", y_from=0.1),
}


def report_figures(scored_cases: Sequence[ScoredCase], baseline: str, suffix: str) -> list[Figure]:
    """
    Return the figures of a report on the cases that every solver has run, the best solver first.

    The ``baseline`` is coloured even if it is not among the first ``FRONT``. ``suffix`` ends the figures' names:
    ``-placement`` or ``-linear``, empty where there is one kind of instances.
    """
    return [
        step_figure(name, curves, x=x, y=y, beside=baseline, suffix=suffix)
        for name, curves, x, y in (
            ("profile", profiles(scored_cases), "times the fastest", "share of cases"),
            ("gaps", gap_shares(scored_cases), "primal gap, %", "share of cases"),
            ("course", mean_gaps(scored_cases), "time, s", "mean primal gap, %"),
        )
    ]


def step_figure(name: str, curves: Curves, *, x: str, y: str, beside: str | None = None, suffix: str = "") -> Figure:
    """
    Return a figure of step functions, one a solver.

    ``name`` is a key of ``SCALES`` and ``CAPTIONS``; ``x`` and ``y`` label the axes, with units; ``beside``: a solver
    that is always coloured.
    """

    def draw(axes: Axes) -> Tips:
        _draw_steps(axes, curves, beside)
        _set_scales(axes, SCALES[name])
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        return {}

    title = CAPTIONS[name] + (f" ({suffix[1:]})" if suffix else "")
    rows = [(solver, at, value) for solver, curve in curves.items() for at, value in curve]
    return Figure(name + suffix, title, CAPTIONS[name], INCHES, draw, ("solver", x, y), rows)


def _draw_steps(axes: Axes, curves: Curves, beside: str | None) -> None:
    """Draw the curves, each up to the largest x of any: the first in colours, the others grey behind them."""
    end = max([at for curve in curves.values() for at, _ in curve], default=1.0)
    end = end * 1.1 if end > 0 else 1.0
    best = [name for name in curves if name != beside][:FRONT]
    front = [name for name in curves if name in best or name == beside]
    colours = dict(zip([*best, *([beside] if beside in curves else [])], cycle(COLOURS), strict=False))
    behind = [name for name in curves if name not in front]
    for name in (*behind, *reversed(front)):
        xs, ys = [at for at, _ in curves[name]], [value for _, value in curves[name]]
        axes.step(
            [*xs, end],
            [*ys, ys[-1] if ys else 0.0],
            where="post",
            label=name if name in front else f"{len(behind)} others" if name == behind[0] else "_",
            color=colours.get(name, BACKGROUND),
            linewidth=1.6 if name in front else 0.6,
            linestyle=STYLES[front.index(name) % len(STYLES)] if name in front else "-",
        )
    if not curves:
        return
    handles, labels = axes.get_legend_handles_labels()
    order = sorted(range(len(labels)), key=lambda i: front.index(labels[i]) if labels[i] in front else len(front))
    axes.legend(
        [handles[i] for i in order],
        [labels[i] for i in order],
        frameon=False,
        fontsize="small",
        loc="upper left",
        bbox_to_anchor=(1.0, 1.0),
    )


def _set_scales(axes: Axes, scales: Scales) -> None:
    """Set the scales of the axes; powers of ten are written out."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    shares = axes.get_ylim()[1] <= 1.1
    for axis, scale, linear_to in ((axes.xaxis, scales.x, scales.x_from), (axes.yaxis, scales.y, scales.y_from)):
        set_scale = axes.set_xscale if axis is axes.xaxis else axes.set_yscale
        if scale == "log":
            set_scale("log")
        elif scale == "symlog":
            set_scale("symlog", linthresh=linear_to, linscale=0.5)
        if scale != "linear":
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axis.set_minor_formatter(NullFormatter())
    if scales.x == "symlog":
        axes.set_xlim(left=-0.01)
    if scales.y == "symlog":
        axes.set_ylim(bottom=0)
    elif shares:
        axes.set_ylim(-0.02, 1.02)


def mean_gaps(scored_cases: Sequence[ScoredCase]) -> dict[str, list[tuple[float, float]]]:
    """
    Return by solver the mean primal gap in percent over time; of solvers with a trajectory only.

    The times are in geometric progression from a thousandth of the longest limit to the limit: most is decided early.
    """
    end = max([scored.limit_s for scored in scored_cases], default=0.0)
    times = [end * 1000 ** (i / TIMES - 1) for i in range(TIMES + 1)]
    return {
        solver: [(time, 100 * fmean(height_at(scored.gap_curve, time) for scored in cases)) for time in times]
        for solver, cases in by_solver([scored for scored in scored_cases if scored.has_trajectory]).items()
    }
