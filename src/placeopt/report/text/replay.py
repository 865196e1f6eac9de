"""Results of replays of a trace, as text and CSV."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from placeopt.formats.csv_text import csv_text
from placeopt.readable import amount, duration
from placeopt.report.text.palette import BAD, GOOD, SO_SO
from placeopt.report.text.text import number, plain, plural
from placeopt.report.text.text_table import TextTable, heading

if TYPE_CHECKING:
    from rich.console import RenderableType

    from placeopt.simulation.replay.series import ReplayPoint, ReplaySeries

MET = {True: "yes", False: "no", None: "not told"}


def curve_page(found: ReplaySeries) -> list[RenderableType]:
    """Return the answer, and one row per setting that was played."""
    parts: list[RenderableType] = []
    if found.question == "add":
        parts += [_answer(found), Text("")]
    columns = [f">{_what(found)}", ">nodes", ">never end", f">{plain(found.measure)}"]
    if found.draws:
        columns += [">from", ">to"]
    if found.goal is not None:
        columns.append("met")
    rows = [_row(found, spot) for spot in found.spots]
    draws = f", mean of {len(found.draws)} draws and its 95 % interval" if found.draws else ""
    parts.append(heading(f"{plain(found.scenario)} under {plain(found.policy)}", f"by replay{draws}"))
    parts.append(TextTable(columns, rows))
    if found.monotone is False:
        parts.append(Text("  more nodes made it worse somewhere: fewer than were found may do", style=SO_SO))
    if any(spot.cut for spot in found.spots):
        cut = sum(spot.cut for spot in found.spots)
        parts.append(Text(f"  {plural(cut, 'round')} cut by the time limit: another run may differ", style=SO_SO))
    if found.kept:
        parts.append(Text(f"  {plural(found.kept, 'run')} stood in the file of rows", style="dim"))
    if found.left:
        parts.append(Text("  stopped before its end", style=SO_SO))
    return [*parts, Text(f"\n{duration(found.seconds)}", style="dim")]


def curve_csv(found: ReplaySeries) -> str:
    """Return the settings as CSV, with one column per draw."""
    draws = [f"draw_{draw}" for draw in found.draws] or ["value"]
    rows = (
        [spot.setting, spot.nodes, spot.mean, spot.low, spot.high, spot.stranded, spot.met, *spot.values]
        for spot in found.spots
    )
    return csv_text(["setting", "nodes", "mean", "low", "high", "stranded", "met", *draws], rows)


def _answer(found: ReplaySeries) -> Text:
    kind = plain(found.replayed.partition(":")[2])
    goal = plain(found.goal or "")
    if not found.spots:
        return Text(f"{goal}: not told, stopped before a number of nodes was played", style=SO_SO)
    if found.found is None:
        most = max((int(spot.setting) for spot in found.spots), default=0)
        return Text(f"{goal} not met with up to {number(most)} more of {kind}", style=BAD)
    title = Text(f"{number(found.found)} more of {kind}: {goal}", style=GOOD)
    remark = "with none" if found.missed is None else f"not with {number(found.missed)}"
    if found.found == 0:
        remark = "met as it is"
    price = (found.price_milli_per_hour or 0) * found.found / 1000
    title.append(f"  {remark}; {amount(price)} an hour; by replay, not proven", style="not bold dim")
    return title


def _row(found: ReplaySeries, spot: ReplayPoint) -> list[str]:
    cells = [spot.setting, number(spot.nodes), number(spot.stranded), _value(spot.mean, found.unit)]
    if found.draws:
        cells += [_value(spot.low, found.unit), _value(spot.high, found.unit)]
    if found.goal is not None:
        cells.append(MET[spot.met])
    return cells


def _what(found: ReplaySeries) -> str:
    kind = found.replayed.partition(":")[0]
    return {"nodes": "more", "arrivals": "% arrivals"}.get(kind, kind)


def _value(value: float | None, unit: str) -> str:
    if value is None:
        return "no end"
    return duration(value) if unit == "s" else f"{amount(value)} {unit}".rstrip()
