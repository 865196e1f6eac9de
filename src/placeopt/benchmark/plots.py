"""Plots of a benchmark as SVG and PDF; needs matplotlib, the extra ``plot``."""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Mapping, Sequence
from itertools import cycle
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

from placeopt.benchmark.comparison import by_solver
from placeopt.benchmark.metrics import height_at
from placeopt.benchmark.samples import Sample

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Curves = Mapping[str, Sequence[tuple[float, float]]]
FORMATS = ("svg", "pdf")
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
"""Okabe and Ito's, which colour-blind people tell apart; line styles change where they begin again."""
STYLES = ("-", "--", "-.", ":")
FRONT = 6
"""Curves in colours, besides the baseline's: more cannot be told apart."""
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


class Scales(NamedTuple):
    """How the axes of a picture are divided; ``x_from`` and ``y_from``: below, they are linear, so that 0 is there."""

    x: str = "linear"
    x_from: float = 0.0
    y: str = "linear"
    y_from: float = 0.0


SCALES = {
    "profile": Scales(x="log"),
    "gaps": Scales(x="symlog", x_from=0.1),
    "course": Scales(x="log", y="symlog", y_from=0.1),
}


def draw(curves: Curves, *, x: str, y: str, scales: Scales, beside: str | None = None) -> dict[str, bytes]:
    """
    Draw step functions, one a solver, and return the picture in every format.

    Parameters
    ----------
    curves
        Pairs (x, y), x ascending; the best solver first.
    x, y
        Labels of the axes, with units.
    scales
        Of the axes.
    beside
        A solver that is told apart even if it is not among the first `FRONT`.
    """
    import matplotlib as mpl
    from matplotlib.backends.backend_pdf import FigureCanvasPdf
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(8.0, 4.0), layout="constrained")
        axes = figure.add_subplot()
        _fill(axes, curves, beside)
        _scale(axes, scales)
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


def _fill(axes: Axes, curves: Curves, beside: str | None) -> None:
    """Draw the curves, each up to the largest x of any: the first in colours, the others grey behind them."""
    end = max([at for curve in curves.values() for at, _ in curve], default=1.0)
    end = end * 1.1 if end > 0 else 1.0
    names = [name for name in curves if name != beside][:FRONT]
    front = [name for name in curves if name in names or name == beside]
    looks = dict(zip([*names, *([beside] if beside in curves else [])], cycle(COLOURS), strict=False))
    behind = [name for name in curves if name not in front]
    for name in (*behind, *reversed(front)):
        xs, ys = [at for at, _ in curves[name]], [share for _, share in curves[name]]
        place = front.index(name) if name in front else 0
        axes.step(
            [*xs, end],
            [*ys, ys[-1] if ys else 0.0],
            where="post",
            label=name if name in front else f"{len(behind)} others" if name == behind[0] else "_",
            color=looks.get(name, "#BBBBBB"),
            linewidth=1.6 if name in front else 0.6,
            linestyle=STYLES[place % len(STYLES)] if name in front else "-",
        )
    handles, labels = axes.get_legend_handles_labels()
    order = sorted(range(len(labels)), key=lambda i: front.index(labels[i]) if labels[i] in front else len(front))
    if curves:
        axes.legend(
            [handles[i] for i in order],
            [labels[i] for i in order],
            frameon=False,
            fontsize="small",
            loc="upper left",
            bbox_to_anchor=(1.0, 1.0),
        )


def _scale(axes: Axes, scales: Scales) -> None:
    """Divide the axes; powers are written out, as people read them."""
    from matplotlib.ticker import FuncFormatter, NullFormatter

    shares = axes.get_ylim()[1] <= 1.1
    for axis, scale, least in ((axes.xaxis, scales.x, scales.x_from), (axes.yaxis, scales.y, scales.y_from)):
        setter = axes.set_xscale if axis is axes.xaxis else axes.set_yscale
        if scale == "log":
            setter("log")
        elif scale == "symlog":
            setter("symlog", linthresh=least, linscale=0.5)
        if scale != "linear":
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axis.set_minor_formatter(NullFormatter())
    if scales.x == "symlog":
        axes.set_xlim(left=-0.01)
    if scales.y == "symlog":
        axes.set_ylim(bottom=0)
    elif shares:
        axes.set_ylim(-0.02, 1.02)


def mean_gaps(samples: Sequence[Sample]) -> dict[str, list[tuple[float, float]]]:
    """
    Return of every solver the mean primal gap in percent over time.

    Of solvers with a trajectory only. At 200 times from a thousandth of the longest limit on, each as much later than
    the one before in proportion: most is decided in the first second.
    """
    end = max([sample.limit_s for sample in samples], default=0.0)
    times = [end * 1000 ** (i / POINTS - 1) for i in range(POINTS + 1)]
    return {
        solver: [(time, 100 * fmean(height_at(sample.gap_curve, time) for sample in own)) for time in times]
        for solver, own in by_solver([sample for sample in samples if sample.has_trajectory]).items()
    }
