"""Figures of ``bench papers``: bars of the papers' values beside ours, and curves of single settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean
from typing import TYPE_CHECKING

from placeopt.formats.figure import COLOURS, Figure, Tips
from placeopt.readable import amount
from placeopt.report.html.curves import step_figure
from placeopt_papers.records import PaperRow, PaperSetting, ReportedFigure
from placeopt_papers.tables import CampaignRows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_LABEL = 34
Points = list[tuple[float, float]]


def paper_figures(key: str, title: str, reported: Sequence[ReportedFigure], results: CampaignRows) -> list[Figure]:
    """Return a bar chart per place in a paper and unit: the paper's values, and ours where there are any."""
    groups: dict[tuple[str, str], list[ReportedFigure]] = {}
    for figure in reported:
        groups.setdefault((figure.place, figure.unit), []).append(figure)
    drawn = []
    for (place, unit), members in groups.items():
        values = [None if member.metric is None else member.metric.of(results) for member in members]
        if any(values):
            ours = [None if value is None else fmean(value) for value in values]
            name = f"{key}-{_plain(place)}-{_plain(unit)}".rstrip("-")
            drawn.append(_bars(name, f"{title}: {place}", unit, members, ours))
    return drawn


def setting_figures(setting: PaperSetting, results: CampaignRows) -> list[Figure]:
    """Return curves of waiting, slowdowns and GPUs held over time of every policy, for the first seed."""
    rows = {policy: of_policy[0] for policy in setting.policies if (of_policy := results.rows(setting.name, policy))}
    if not any(len(row.waits_s) > 1 and row.waits_s[-1] > 0 for row in rows.values()):
        return []  # no job waited: the curves would be flat
    seed = f"seed {next(iter(rows.values())).case.seed}" if setting.seeded else "one scenario"
    return [
        step_figure(
            f"{setting.name}-waits",
            f"{setting.title}: waiting",
            f"Part of the jobs that waited at most so long, by percentiles; {seed}.",
            _each(rows, lambda row: [(wait, i / 100) for i, wait in enumerate(row.waits_s)]),
            ("seconds", "part of the jobs"),
        ),
        step_figure(
            f"{setting.name}-slowdowns",
            f"{setting.title}: slowdown with waiting",
            f"Jobs from the most to the least slowed, as SC'17 figure 10, by percentiles; {seed}.",
            _each(rows, lambda row: [(float(i), slow) for i, slow in enumerate(reversed(row.slowdowns))]),
            ("percent of the jobs", "(end - arrival) / run time alone"),
        ),
        step_figure(
            f"{setting.name}-held",
            f"{setting.title}: GPUs held",
            f"Part of the GPUs' time that was granted, above 1 where jobs share; {seed}.",
            _each(rows, lambda row: [(0.0, row.held[0][1]), *row.held] if row.held else []),
            ("hours", "part of the GPUs"),
        ),
    ]


def _each(rows: dict[str, PaperRow], points: Callable[[PaperRow], Points]) -> dict[str, Points]:
    return {
        policy + (f" ({row.never_end:,} of {row.jobs:,} never end)" if row.never_end else ""): curve
        for policy, row in rows.items()
        if (curve := points(row))
    }


def _bars(name: str, title: str, unit: str, members: Sequence[ReportedFigure], ours: Sequence[float | None]) -> Figure:
    labels = [
        member.what if len(member.what) <= MOST_LABEL else member.what[: MOST_LABEL - 1] + "…" for member in members
    ]

    def draw(axes: Axes) -> Tips:
        tips: dict[str, str] = {}
        for offset, colour, label, values in (
            (-0.2, COLOURS[0], "paper", [member.reported for member in members]),
            (0.2, COLOURS[4], "here", list(ours)),
        ):
            drawn = False
            for y, value in enumerate(values):
                if value is None:
                    continue
                gid = f"{name}-{len(tips)}"
                bar = axes.barh(
                    y + offset,
                    value,
                    0.38,
                    color=colour,
                    hatch=None if label == "paper" else "//",
                    edgecolor="white",
                    label=None if drawn else label,
                )
                drawn = True
                bar.patches[0].set_gid(gid)
                tips[gid] = f"{members[y].what}, {label}: {amount(value)} {unit}"
                axes.annotate(
                    amount(value),
                    (value, y + offset),
                    xytext=(3 if value >= 0 else -3, 0),
                    textcoords="offset points",
                    ha="left" if value >= 0 else "right",
                    va="center",
                    fontsize=6,
                )
        axes.set_yticks(range(len(members)), labels, fontsize=7)
        axes.invert_yaxis()
        axes.margins(x=0.12)
        axes.set_xlabel(unit)
        axes.legend(frameon=False, fontsize=7)
        return tips

    return Figure(
        name=name,
        title=title,
        caption="The paper's value and ours; no bar where nothing was run.",
        inches=(8.0, max(2.0, 0.42 * len(members) + 1.0)),
        draw=draw,
        header=("what", "unit", "paper", "here"),
        rows=[(member.what, unit, member.reported, value) for member, value in zip(members, ours, strict=True)],
    )


def _plain(text: str) -> str:
    words = "".join(letter if letter.isalnum() else " " for letter in text.replace("%", "percent"))
    return "-".join(words.split()).lower()
