"""A row for each version that has been measured: what a release is judged by."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence

from rounds import gap_percent
from spec import FAILED, Row, latest

Cells = Sequence[str | float | None]
COLUMNS = (
    *("commit", "date", "library: value gap %", "cost gap %", "proven", "middle: value gap %", "cost gap %", "proven"),
    *("large: value gap %", "openb, 10 s: gap %", "place a job, ms", "failed", "load"),
)
NEEDED = {"library", "middle"}


def history(rows: Iterable[Row]) -> list[Cells]:
    """Return a line for each commit that has measured ``NEEDED``, the first measured first."""
    versions: dict[str, list[Row]] = {}
    for row in rows:
        versions.setdefault(row["commit"] or "", []).append(row)
    return [line(commit, latest(some)) for commit, some in versions.items() if {row["spec"] for row in some} >= NEEDED]


def line(commit: str, rows: list[Row]) -> Cells:
    """Return the medians of a version."""
    good = [row for row in rows if FAILED not in row]
    plans = {
        spec: [row for row in good if row["spec"] == spec and row["method"] == "auto"]
        for spec in ("library", "middle", "large", "openb")
    }
    openb = [row for row in plans["openb"] if row["limit_s"] == max(one["limit_s"] for one in plans["openb"])]
    placed = [row["p50_ms"] for row in good if row["spec"] == "live" and row["call"] == "place a job"]
    loads = [row["load"] for row in rows]
    return (
        f"`{commit[:9]}`",
        rows[0]["date"].partition(" ")[0],
        *(cell for spec in ("library", "middle") for cell in figures(plans[spec])),
        mean_gap(plans["large"], "value"),
        mean_gap(openb, "value"),
        f"{placed[-1]:.2f}" if placed else None,
        len(rows) - len(good),
        f"{min(loads):g} to {max(loads):g}",
    )


def figures(rows: list[Row]) -> Cells:
    """Return mean gaps of value and cost, and how many rounds are proven optimal."""
    return mean_gap(rows, "value"), mean_gap(rows, "cost"), sum(row["status"] == "optimal" for row in rows)


def mean_gap(rows: list[Row], level: str) -> str | None:
    """Return the mean gap of a level in percent; a gap above 100 % and none at all count as 100."""
    gaps = [gap_percent(row[level], row[f"{level}_bound"]) for row in rows if row[level]]
    return f"{statistics.mean(100.0 if gap is None else min(100.0, gap) for gap in gaps):.3g}" if gaps else None
