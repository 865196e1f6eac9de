"""Sections of the page that are drawn: plans by the size of the round, plans by time, memory by the hour."""

from __future__ import annotations

from collections.abc import Sequence

from history import Cells
from rounds import GREEDY, gap_percent
from sections import section, span
from spec import FAILED, Row

CURVE = """\
`python bench/run.py curve`. Six jobs a node, nodes of 8 GPUs, 10 s, the first seed of *Unseen rounds*. Gaps in percent
to the bounds; a cost without one counts as 100. *Greedy*: how much more the plan of method `stranding` costs, in
percent, where it is worth the same. In the drawings a line is a generator, in the order of the columns.
"""
PRIMAL = """\
`python bench/run.py primal`. What a plan still lacks, in percent of the best that any version has found, as the mean
over the 10 s from the call (primal integral over time): 0 is the best plan at once, 100 is none until the end. A cost
counts from when the value is that of the best.
"""
MEMORY = """\
`python bench/run.py memory`. Resident memory of the process that plays the rounds of a day (2,880, one after
the other), with explanations, readings and what-ifs between them.
"""


def sizes_section(rows: list[Row]) -> str:
    """Return gaps by size, as a table and drawn."""
    by_size: dict[int, dict[str, dict[str, Row]]] = {}
    for row in rows:
        if FAILED not in row:
            spec, _, shape = row["round"].partition("-")
            by_size.setdefault(int(shape.split("x")[1]), {}).setdefault(spec, {})[row["method"]] = row
    specs = list(dict.fromkeys(spec for of_size in by_size.values() for spec in of_size))
    lines: list[Cells] = []
    at: list[int] = []
    drawn: dict[str, list[list[float]]] = {"value": [], "cost": []}
    for nodes, of_spec in sorted(by_size.items()):
        if any(of_spec.get(spec, {}).keys() < {"auto", GREEDY} for spec in specs):
            continue  # one of its rounds failed
        pairs = [(of_spec[spec]["auto"], of_spec[spec][GREEDY]) for spec in specs]
        at.append(nodes)
        gaps = {level: [gap_of(ours, level) for ours, _ in pairs] for level in drawn}
        for level, of_level in gaps.items():
            drawn[level].append(of_level)
        above = [cost_above(greedy, ours) for ours, greedy in pairs]
        cells = [f"{gap:.3g}" for of_level in gaps.values() for gap in of_level]
        seconds = max(ours["seconds"] for ours, _ in pairs)
        lines.append((nodes, *cells, *above, seconds, span([ours["load"] for ours, _ in pairs])))
    columns = [f"{level}, {spec}" for level in (*drawn, "greedy") for spec in specs]
    pictures = ""
    for level, of_size in drawn.items():
        pictures += picture(f"{level} gap %", "nodes", at, list(zip(*of_size, strict=True)))
    table = section("Rounds by number of nodes", CURVE, rows, ("nodes", *columns, "most seconds", "load"), lines)
    return table + pictures


def cost_above(other: Row, ours: Row) -> str | None:
    """Return how much more another plan of the same value costs, in percent."""
    if not ours["cost"] or ours["value"] != other["value"]:
        return None
    return f"{100 * (other['cost'] / ours['cost'] - 1):.3g}"


def gap_of(row: Row, level: str) -> float:
    """Return the gap of a level in percent, at most 100."""
    gap = gap_percent(row[level], row[f"{level}_bound"]) if row[level] else 0.0
    return 100.0 if gap is None else min(gap, 100.0)


def picture(title: str, across: str, at: Sequence[int], curves: Sequence[Sequence[float]]) -> str:
    """Return some curves over the same points, drawn."""
    most = max((number for curve in curves for number in curve), default=0)
    axes = f'    x-axis "{across}" {list(at)}\n    y-axis 0 --> {max(1.2 * most, 0.01):.4g}\n'
    lines = "\n".join(f"    line {[round(number, 4) for number in curve]}" for curve in curves)
    return f'\n```mermaid\nxychart-beta\n    title "{title}"\n{axes}{lines}\n```\n' if at else ""


def primal_section(rows: list[Row]) -> str:
    """Return by version how early plans were good."""
    rounds: dict[str, dict[str, Row]] = {}
    for row in rows:
        if FAILED not in row:
            rounds.setdefault(row["round"], {})[row["commit"] or ""] = row
    versions = list(dict.fromkeys(commit for of_round in rounds.values() for commit in of_round))
    lines: list[Cells] = []
    for name, of_round in rounds.items():
        best = max((row["value"], -(row["cost"] or 0)) for row in of_round.values())
        figures = [integrals(of_round[commit], best) if commit in of_round else (None, None) for commit in versions]
        cells = [None if one is None else f"{one:.3g}" for level in range(2) for one in (two[level] for two in figures)]
        lines.append((name, *cells, span([row["load"] for row in of_round.values()])))
    columns = [f"{level}, {commit[:9]}" for level in ("value", "cost") for commit in versions]
    return section("Plans by time", PRIMAL, rows, ("round", *columns, "load"), lines)


def integrals(row: Row, best: tuple[int, int]) -> tuple[float, float | None]:
    """
    Return the means over time of what value and cost lack, in percent, to ``best``: its value, and its cost negative.

    None for the cost where none counts.
    """
    most, least = best[0], -best[1]
    ends = row["limit_s"]
    value = cost = 0.0
    steps = [(0.0, None, None), *(tuple(step) for step in row["trace"]), (ends, row["value"], row["cost"])]
    for (began, worth, price), (until, _, _) in zip(steps, [*steps[1:], (ends, None, None)], strict=True):
        seconds = max(min(until, ends) - began, 0.0)
        value += seconds * (1.0 if worth is None else (most - worth) / max(most, 1))
        cost += seconds * (1.0 if worth is None or worth < most or price is None else (price - least) / max(price, 1))
    return 100 * value / ends, None if row["cost"] is None else 100 * cost / ends


def memory_section(rows: list[Row]) -> str:
    """Return how memory goes on over the rounds of a day, as a table and drawn."""
    runs: dict[str, list[Row]] = {}
    for row in rows:
        if FAILED not in row:
            runs.setdefault(row["round"], []).append(row)
    lines: list[Cells] = []
    pictures = ""
    for name, some in runs.items():
        mib = [row["mib"] for row in some]
        lines.append((name, mib[0], mib[len(mib) // 2], mib[-1], max(mib), span([row["load"] for row in some])))
        pictures += picture(f"{name}, MiB", "hour", range(1, len(mib) + 1), [mib])
    columns = ("through", "MiB after an hour", "after half", "at the end", "most", "load")
    return section("Memory over a day", MEMORY, rows, columns, lines) + pictures
