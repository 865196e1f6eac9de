"""The GPU map as SVG text, written without matplotlib: a live page draws it again whenever the cluster changes."""

from __future__ import annotations

import html

from placeopt.report.html.cluster_layout import STATES, ClusterLayout

SIDE = 10
"""Side of a square in user units."""
MARGIN = 6
LEGEND_HEIGHT = 26
ZOOM = 1.6
"""Pixels of a user unit, where the page has room."""
LETTER = 5.5
"""Width of a letter in the legend."""
SHADES = (
    "#440154", "#482475", "#414487", "#355f8d", "#2a788e", "#21918c", "#22a884", "#44bf70", "#7ad151", "#bddf26",
    "#fde725",
)  # fmt: skip
"""Matplotlib's viridis at 0, 0.1, ... 1."""
LIVE = {"running before": "running", "several jobs": "several jobs"}
"""What states are called where there is no plan."""


def cluster_svg(layout: ClusterLayout) -> str:
    """Return the map as it runs now, with a tip on every square, and a legend; nothing in it needs a style sheet."""
    legend, legend_width = _legend(layout)
    width = max(layout.width * SIDE, legend_width) + 2 * MARGIN
    height = layout.height * SIDE + LEGEND_HEIGHT + MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 {-MARGIN} {width:.0f} {height:.0f}" '
        f'width="{ZOOM * width:.0f}" height="{ZOOM * height:.0f}" role="img" aria-label="GPUs of the cluster" '
        f'aria-description="{html.escape(layout.caption("as it runs now"))}" font-family="sans-serif" font-size="8" '
        f'fill="currentColor">'
    ]
    for square in layout.squares:
        colour = square.colour if isinstance(square.colour, str) else SHADES[round(10 * min(1.0, square.colour))]
        parts.append(
            f'<rect x="{MARGIN + SIDE * square.x:g}" y="{SIDE * square.y:g}" width="9" height="9" fill="{colour}" '
            f'stroke="#999" stroke-width=".4"><title>{html.escape(square.words)}</title></rect>'
        )
    for name in layout.names:
        x, y = MARGIN + SIDE * name.x, SIDE * name.y
        turned = f' transform="rotate(-90 {x + 7:g} {y:g})" dx="7"' if name.upright else ""
        parts.append(f'<text x="{x:g}" y="{y:g}"{turned}>{html.escape(name.text)}</text>')
    return "".join([*parts, legend, "</svg>"])


def _legend(layout: ClusterLayout) -> tuple[str, float]:
    """Return the legend below the map, and its width."""
    y = layout.height * SIDE + 8
    if layout.by_node:
        scale = [(colour, "") for colour in SHADES]
        entries = [("", "held: 0 %"), *scale, ("", "100 %")]
    else:
        entries = [(STATES[state], LIVE.get(state, state)) for state in layout.states]
    parts, x = [], float(MARGIN)
    for colour, words in entries:
        if colour:
            parts.append(
                f'<rect x="{x:g}" y="{y:g}" width="9" height="9" fill="{colour}" stroke="#999" stroke-width=".4"/>'
            )
            x += SIDE + (4 if words else 0)
        if words:
            parts.append(f'<text x="{x:g}" y="{y + 8:g}">{html.escape(words)}</text>')
            x += LETTER * len(words) + 8
    return "".join(parts), x
