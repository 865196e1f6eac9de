"""Whole rounds under other settings, replays of a trace, and a placement under review, as text and CSV."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from placeopt.formats.csv_table import csv_text
from placeopt.readable import amount, duration, gpus, number, percent, plain, plural
from placeopt.report.text.palette import BAD, GOOD, SO_SO
from placeopt.report.text.text_table import TextTable, heading, listed, took
from placeopt.whatif.answers import RoundOutcome

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import RenderableType

    from placeopt.simulation.replay.series import ReplayPoint, ReplaySeries
    from placeopt.whatif.answers import Prices, Review, Swap, Sweep


ANSWER = {"better": GOOD, "worse": BAD, "equal": SO_SO, "unknown": SO_SO}
COLUMNS = (">value", ">bound", ">gap", ">placed", ">waiting", ">GPUs", ">of", ">price")
UNITS = {"demand": "% demand", "quota": "GPUs of quota", "nodes": "nodes more"}


def sweep_page(found: Sweep) -> list[RenderableType]:
    """Return one row per setting."""
    rows = [[number(point.setting), *_cells(point.outcome)] for point in found.points]
    unit = UNITS[found.varied.partition(":")[0]]
    parts: list[RenderableType] = [heading(f"Varied: {plain(found.varied)}"), TextTable([f">{unit}", *COLUMNS], rows)]
    if found.left:
        parts.append(Text(f"  {plural(found.left, 'setting')} not looked at"))
    return [*parts, took(found.seconds)]


def sweep_csv(found: Sweep) -> str:
    """Return the points as CSV."""
    fields = list(RoundOutcome.model_fields)
    rows = ([point.setting, *(getattr(point.outcome, name) for name in fields)] for point in found.points)
    return csv_text(["setting", *fields], rows)


def swap_page(found: Swap) -> list[RenderableType]:
    """Return both rounds, and the interval of the gain."""
    title = Text(f"{plural(found.exchanged, 'node')} exchanged: ", style="bold")
    title.append(found.answer, style=ANSWER[found.answer])
    title.append(f"  value {_span(found.gain_low, found.gain_high)}, proven", style="not bold dim")
    rows = [["before", *_cells(found.before)], ["after", *_cells(found.after)]]
    parts: list[RenderableType] = [title, TextTable(["", *COLUMNS], rows)]
    if found.after.displaced:
        parts.append(Text(f"  {plural(found.after.displaced, 'job')} ran there and had to be placed again"))
    return [*parts, took(found.seconds)]


def prices_page(found: Prices) -> list[RenderableType]:
    """Return one row per resource, quota or other thing that has a price."""
    rows = [
        [
            one.of,
            one.name,
            _span(one.low, one.high),
            _signed(one.by_duals),
            one.agreement or "-",
            "-" if one.price_milli_per_hour is None else amount(one.price_milli_per_hour / 1000),
        ]
        for one in found.prices
    ]
    title = Text(f"One more is worth, beside a value of {number(found.value)}", style="bold")
    title.append(f"  bound {number(found.value_bound)}", style="not bold dim")
    columns = ["of", "like", ">solved again", ">by duals", "duals are", ">an hour"]
    parts: list[RenderableType] = [title, TextTable(columns, rows, wrap="like")]
    if any(one.agreement == "inside" for one in found.prices):
        parts.append(Text("  inside: within an interval, which neither confirms nor refutes them", style="dim"))
    if found.left:
        parts.append(Text(f"  {found.left:,} not looked at"))
    return [*parts, took(found.seconds)]


def _cells(outcome: RoundOutcome) -> list[str]:
    bound = outcome.value_bound
    gap = None if bound is None else abs(bound - outcome.value) / max(1, abs(outcome.value))
    return [
        number(outcome.value),
        number(bound),
        percent(gap),
        number(outcome.jobs_placed),
        number(outcome.jobs_waiting),
        gpus(outcome.gpu_milli_placed),
        gpus(outcome.gpu_milli_capacity),
        amount(outcome.price_milli_per_hour / 1000),
    ]


def _span(low: int | None, high: int | None) -> str:
    return _signed(low) if low == high else f"{_signed(low)} to {_signed(high)}"


def _signed(value: int | None) -> str:
    return "-" if value is None else f"{value:+,}" if value else "0"


MET = {True: "yes", False: "no", None: "not known"}


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
    return [*parts, took(found.seconds)]


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
        return Text(f"{goal}: not known, stopped before a number of nodes was played", style=SO_SO)
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


SHOWN = 20
NODES = 4


def review_page(found: Review) -> list[RenderableType]:
    """Return broken rules, distance from the best plan, costs by term, and the moves that help most."""
    if not found.valid:
        title = Text("breaks rules", style=BAD).append(f": {plural(found.count, 'violation')}", style="not bold")
        rows = [[text] for text in found.violations[:SHOWN]]
        more = [Text(f"  ... and {found.count - len(rows):,} more")] if found.count > len(rows) else []
        return [title, TextTable([""], rows, wrap=""), *more, took(found.seconds)]
    parts: list[RenderableType] = [Text("keeps every rule", style=GOOD), Text("")]
    rows = [
        ["value", number(found.value), number(found.best_value), number(found.value_bound), percent(found.value_gap)]
    ]
    if found.cost is not None:
        rows.append(["cost", number(found.cost), number(found.best_cost), number(found.cost_bound), _cost_gap(found)])
    parts.append(TextTable(["", ">this plan", ">best found", ">bound", ">from the bound"], rows))
    if found.terms:
        table_rows = [
            [t.name, number(t.raw), number(t.best_raw), t.unit, number(t.weight * (t.raw - t.best_raw))]
            for t in found.terms
        ]
        parts += [Text(""), heading("Costs", "raw, and what the difference weighs")]
        parts.append(TextTable(["term", ">this plan", ">best found", "unit", ">difference"], table_rows, wrap="unit"))
    note = f"{plural(found.jobs_tried, 'job')} tried" + ("" if found.all_tried else "; time was over before all were")
    parts += [Text(""), heading("Moves that help most", f"each while all other jobs stay; {note}")]
    if found.moves:
        table_rows = [
            [one.kind, one.job, _nodes(one.nodes), number(one.gain_value), number(one.gain_cost)] for one in found.moves
        ]
        parts.append(TextTable(["", "job", "to", ">value gained", ">cost saved"], table_rows, wrap="to"))
    else:
        parts.append(Text("  none"))
    return [*parts, took(found.seconds)]


def _cost_gap(found: Review) -> str:
    """Return the gap of the cost; a dash for plans of different value, whose costs do not compare."""
    if found.cost is None or found.cost_bound is None or found.value != found.best_value:
        return "-"
    return percent(abs(found.cost - found.cost_bound) / max(1, abs(found.cost)))


def _nodes(workers_on: Mapping[str, int]) -> str:
    return listed([node if workers == 1 else f"{node} x {workers}" for node, workers in workers_on.items()], NODES)
