"""Plots of a benchmark as SVG and PDF; needs matplotlib, the extra ``plot``."""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, Any

from placeopt.benchmark.comparison import by_solver
from placeopt.benchmark.metrics import height_at
from placeopt.benchmark.samples import Sample

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Curves = Mapping[str, Sequence[tuple[float, float]]]
FORMATS = ("svg", "pdf")
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's, which colour-blind people tell apart; line styles change where they begin again."""
STYLES = ("-", "--", ":", "-.")
POINTS = 200
STYLE: dict[str, Any] = {
    "svg.hashsalt": "placeopt",
    "pdf.fonttype": 42,
    "axes.spines.top": False,
    "axes.spines.right": False,
}


def can_plot() -> bool:
    """Whether matplotlib is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def draw(curves: Curves, *, x: str, y: str, logarithmic: bool) -> dict[str, bytes]:
    """
    Draw step functions, one a solver, and return the picture in every format.

    Parameters
    ----------
    curves
        Pairs (x, y), x ascending.
    x, y
        Labels of the axes, with units.
    logarithmic
        Whether x is; of base 2, as profiles are drawn.
    """
    import matplotlib as mpl
    from matplotlib.backends.backend_pdf import FigureCanvasPdf
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(6.4, 4.0), layout="constrained")
        axes = figure.add_subplot()
        fill(axes, curves, logarithmic=logarithmic)
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        out = {}
        for ending, canvas, undated in (
            ("svg", FigureCanvasSVG(figure), {"Date": None}),
            ("pdf", FigureCanvasPdf(figure), {"CreationDate": None}),
        ):
            stream = io.BytesIO()
            canvas.print_figure(stream, format=ending, metadata=undated)
            out[ending] = stream.getvalue()
    return out


def fill(axes: Axes, curves: Curves, *, logarithmic: bool) -> None:
    """Draw the curves on given axes, each up to the largest x of any."""
    end = max([at for curve in curves.values() for at, _ in curve], default=1.0)
    end = end * 1.1 if end > 0 else 1.0
    for number, (solver, curve) in enumerate(curves.items()):
        xs, ys = [at for at, _ in curve], [share for _, share in curve]
        axes.step(
            [*xs, end],
            [*ys, ys[-1] if ys else 0.0],
            where="post",
            label=solver,
            color=COLOURS[number % len(COLOURS)],
            linestyle=STYLES[number // len(COLOURS) % len(STYLES)],
        )
    if logarithmic:
        axes.set_xscale("log", base=2)
    axes.set_ylim(-0.02, 1.02)
    if curves:
        axes.legend(frameon=False, fontsize="small")


def mean_gaps(samples: Sequence[Sample]) -> dict[str, list[tuple[float, float]]]:
    """Return of every solver the mean primal gap over time, up to the longest limit, at 200 times."""
    end = max([sample.limit_s for sample in samples], default=0.0)
    times = [end * i / POINTS for i in range(POINTS + 1)]
    return {
        solver: [(time, fmean(height_at(sample.gap_curve, time) for sample in own)) for time in times]
        for solver, own in by_solver(samples).items()
    }
