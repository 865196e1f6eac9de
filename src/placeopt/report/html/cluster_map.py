"""The GPU map: racks of nodes, a square for every GPU, or for every node of a large cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from placeopt.benchmark.figure import Figure, Tips
from placeopt.model import Instance, Plan
from placeopt.report.html.cluster_layout import STATES, ClusterLayout, GpuRow, cluster_layout

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SMALL = 40
"""Squares in a line up to which the legend has two columns."""


def gpu_map(instance: Instance, plan: Plan | None = None, *, name: str = "gpus") -> Figure:
    """
    Return the map of the GPUs held: by running jobs, or by the plan.

    With more than ``cluster_layout.MOST_GPUS`` GPUs a square is a node, coloured by the share of its GPUs that is held.
    """
    layout = cluster_layout(instance, plan)
    beside = 2.2 if layout.by_node else 1.0  # width of the colour bar
    inches = (min(16.0, max(3.8, 0.16 * layout.width + beside)), min(30.0, max(3.0, 0.16 * layout.height + 1.5)))
    return Figure(
        name=name,
        title=f"GPUs of {instance.name}",
        caption=layout.caption("as the plan leaves it" if plan is not None else "as it runs now"),
        inches=inches,
        draw=lambda axes: _draw(axes, name, layout),
        header=GpuRow._fields,
        rows=layout.rows,
    )


def _draw(axes: Axes, name: str, layout: ClusterLayout) -> Tips:
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.patches import Patch, Rectangle

    shades = colormaps["viridis"]
    tips: dict[str, str] = {}
    for x, y, colour, words in layout.squares:
        gid = f"{name}-{len(tips)}"
        face = colour if isinstance(colour, str) else shades(colour)
        axes.add_patch(Rectangle((x, y), 0.9, 0.9, facecolor=face, edgecolor="#999999", linewidth=0.3, gid=gid))
        tips[gid] = words
    for x, y, text, upright in layout.names:
        if upright:
            axes.text(x, y, text, fontsize=7, rotation=90, va="bottom")
        else:
            axes.text(x, y, text, fontsize=7, clip_on=True)
    axes.set_xlim(-0.5, layout.width)
    axes.set_ylim(layout.height, -1)
    axes.set_aspect("equal", anchor="W")
    axes.axis("off")
    if layout.by_node:
        axes.figure.colorbar(ScalarMappable(cmap="viridis"), ax=axes, label="part of the node's GPUs held", shrink=0.5)
    else:
        axes.legend(
            handles=[Patch(facecolor=STATES[state], edgecolor="#999999", label=state) for state in layout.states],
            loc="upper left",
            bbox_to_anchor=(0, 0),
            ncols=len(layout.states) if layout.width > SMALL else 2,
            frameon=False,
        )
    return tips
