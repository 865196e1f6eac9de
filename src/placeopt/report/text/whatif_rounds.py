"""Whole rounds under other settings, replays of a trace, and a placement under review, as text and CSV."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from placeopt.benchmark.table import csv_text
from placeopt.readable import amount, duration, gpus, number, percent, plain, plural
from placeopt.report.text.palette import BAD, GOOD, SO_SO
from placeopt.report.text.text_table import TextTable, heading, listed, took
from placeopt.report.text.whatif import per_hour
from placeopt.whatif.answers import RoundOutcome

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.console import RenderableType

    from placeopt.simulation.replay.series import ReplayPoint, ReplaySeries
    from placeopt.whatif.answers import Prices, Review, Swap, Sweep


ANSWER = {"better": GOOD, "worse": BAD, "equal": SO_SO, "unknown": SO_SO}
COLUMNS = (">value", ">bound", ">gap", ">placed", ">waiting", ">GPUs", ">of", ">price", ">a GPU hour")
UNITS = {"demand": "% demand", "quota": "GPUs of quota", "nodes": "nodes more"}


def sweep_page(answer: Sweep) -> list[RenderableType]:
    """Return one row per setting."""
    rows = [[number(point.setting), *_cells(point.outcome)] for point in answer.points]
    unit = UNITS[answer.varied.partition(":")[0]]
    parts: list[RenderableType] = [heading(f"Varied: {plain(answer.varied)}"), TextTable([f">{unit}", *COLUMNS], rows)]
    if answer.left:
        parts.append(Text(f"  {plural(answer.left, 'setting')} not examined"))
    return [*parts, took(answer.seconds)]


def sweep_csv(answer: Sweep) -> str:
    """Return the points as CSV."""
    fields = list(RoundOutcome.model_fields)
    rows = ([point.setting, *(getattr(point.outcome, name) for name in fields)] for point in answer.points)
    return csv_text(["setting", *fields], rows)


def swap_page(answer: Swap) -> list[RenderableType]:
    """Return both rounds, and the interval of the gain."""
    title = Text(f"{plural(answer.exchanged, 'node')} exchanged: ", style="bold")
    title.append(answer.answer, style=ANSWER[answer.answer])
    title.append(f"  value {_span(answer.gain_low, answer.gain_high)}, proven", style="not bold dim")
    rows = [["before", *_cells(answer.before)], ["after", *_cells(answer.after)]]
    parts: list[RenderableType] = [title, TextTable(["", *COLUMNS], rows)]
    if answer.after.displaced:
        parts.append(Text(f"  {plural(answer.after.displaced, 'job')} ran there and had to be placed again"))
    return [*parts, took(answer.seconds)]


def prices_page(answer: Prices) -> list[RenderableType]:
    """Return one row per resource, quota or other thing that has a price."""
    rows = [
        [
            price.of,
            price.name,
            _span(price.low, price.high),
            _signed(price.by_duals),
            price.agreement or "-",
            "-" if price.price_milli_per_hour is None else amount(price.price_milli_per_hour / 1000),
            number(price.gpus),
        ]
        for price in answer.prices
    ]
    title = Text(f"Worth of one more, at a value of {number(answer.value)}", style="bold")
    title.append(f"  bound {number(answer.value_bound)}", style="not bold dim")
    columns = ["of", "like", ">solved again", ">by duals", "duals are", ">price an hour", ">GPU hours"]
    parts: list[RenderableType] = [title, TextTable(columns, rows, wrap="like")]
    if any(price.agreement == "inside" for price in answer.prices):
        parts.append(Text("  inside: within an interval, which neither confirms nor refutes them", style="dim"))
    if answer.left:
        parts.append(Text(f"  {answer.left:,} not examined"))
    return [*parts, took(answer.seconds)]


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
        amount(outcome.price_milli_per_hour / outcome.gpu_milli_placed) if outcome.gpu_milli_placed else "-",
    ]


def _span(low: int | None, high: int | None) -> str:
    return _signed(low) if low == high else f"{_signed(low)} to {_signed(high)}"


def _signed(value: int | None) -> str:
    return "-" if value is None else f"{value:+,}" if value else "0"


MET = {True: "yes", False: "no", None: "not known"}


def curve_page(answer: ReplaySeries) -> list[RenderableType]:
    """Return the answer, and one row per setting that was played."""
    parts: list[RenderableType] = []
    if answer.question == "add":
        parts += [_answer(answer), Text("")]
    columns = [f">{_what(answer)}", ">nodes", ">price", ">GPUs", ">never end", f">{plain(answer.measure)}"]
    if answer.draws:
        columns += [">from", ">to"]
    if answer.goal is not None:
        columns.append("met")
    rows = [_row(answer, spot) for spot in answer.spots]
    draws = f", mean of {len(answer.draws)} draws and its 95 % interval" if answer.draws else ""
    parts.append(heading(f"{plain(answer.scenario)} under {plain(answer.policy)}", f"by simulation{draws}"))
    parts.append(TextTable(columns, rows))
    if answer.monotone is False:
        parts.append(
            Text("  more nodes made it worse somewhere: fewer than the number found may be enough", style=SO_SO)
        )
    if any(spot.cut for spot in answer.spots):
        cut = sum(spot.cut for spot in answer.spots)
        parts.append(Text(f"  {plural(cut, 'round')} stopped by the time limit: another run may differ", style=SO_SO))
    if answer.kept:
        parts.append(Text(f"  {plural(answer.kept, 'run')} were already in the file of rows", style="dim"))
    if answer.left:
        parts.append(Text("  stopped before its end", style=SO_SO))
    return [*parts, took(answer.seconds)]


def curve_csv(answer: ReplaySeries) -> str:
    """Return the settings as CSV, with one column per draw."""
    draws = [f"draw_{draw}" for draw in answer.draws] or ["value"]
    rows = (
        [spot.setting, spot.nodes, spot.mean, spot.low, spot.high, spot.stranded, spot.met, *spot.values]
        for spot in answer.spots
    )
    return csv_text(["setting", "nodes", "mean", "low", "high", "stranded", "met", *draws], rows)


def _answer(answer: ReplaySeries) -> Text:
    kind = plain(answer.replayed.partition(":")[2])
    goal = plain(answer.goal or "")
    if not answer.spots:
        return Text(f"{goal}: not known, stopped before any number of nodes was simulated", style=SO_SO)
    if answer.found is None:
        most = max((int(spot.setting) for spot in answer.spots), default=0)
        return Text(f"{goal} is not met with up to {plural(most, 'more node')} like {kind}", style=BAD)
    title = Text(f"{goal} met with {plural(answer.found, 'more node')} like {kind}", style=GOOD)
    remark = "met with every number tried" if answer.missed is None else f"not with {number(answer.missed)}"
    if answer.found == 0:
        remark = "no node needed"
    cost = per_hour(answer.price_milli_per_hour or 0, answer.gpus or 0, answer.found)
    title.append(f"  {remark}; {cost}; simulated, not proven", style="not bold dim")
    return title


def _row(answer: ReplaySeries, spot: ReplayPoint) -> list[str]:
    price = None if spot.price_milli_per_hour is None else spot.price_milli_per_hour / 1000
    cells = [spot.setting, number(spot.nodes), amount(price), number(spot.gpus), number(spot.stranded)]
    cells.append(_value(spot.mean, answer.unit))
    if answer.draws:
        cells += [_value(spot.low, answer.unit), _value(spot.high, answer.unit)]
    if answer.goal is not None:
        cells.append(MET[spot.met])
    return cells


def _what(answer: ReplaySeries) -> str:
    kind = answer.replayed.partition(":")[0]
    return {"nodes": "more", "arrivals": "% arrivals"}.get(kind, kind)


def _value(value: float | None, unit: str) -> str:
    if value is None:
        return "no end"
    return duration(value) if unit == "s" else f"{amount(value)} {unit}".rstrip()


SHOWN = 20
NODES = 4


def review_page(review: Review) -> list[RenderableType]:
    """Return broken rules, distance from the best plan, costs by term, and the moves that help most."""
    if not review.valid:
        title = Text("breaks rules", style=BAD).append(f": {plural(review.count, 'violation')}", style="not bold")
        rows = [[text] for text in review.violations[:SHOWN]]
        more = [Text(f"  ... and {review.count - len(rows):,} more")] if review.count > len(rows) else []
        return [title, TextTable([""], rows, wrap=""), *more, took(review.seconds)]
    parts: list[RenderableType] = [Text("keeps every rule", style=GOOD), Text("")]
    figures = [number(value) for value in (review.value, review.best_value, review.value_bound)]
    rows = [["value", *figures, percent(review.value_gap)]]
    if review.cost is not None:
        figures = [number(value) for value in (review.cost, review.best_cost, review.cost_bound)]
        rows.append(["cost", *figures, _cost_gap(review)])
    parts.append(TextTable(["", ">this plan", ">best found", ">bound", ">from the bound"], rows))
    if review.terms:
        table_rows = [
            [t.name, number(t.raw), number(t.best_raw), t.unit, number(t.weight * (t.raw - t.best_raw))]
            for t in review.terms
        ]
        parts += [Text(""), heading("Costs", "raw scores; the difference is weighted")]
        parts.append(TextTable(["term", ">this plan", ">best found", "unit", ">difference"], table_rows, wrap="unit"))
    note = f"{plural(review.jobs_tried, 'job')} tried" + ("" if review.all_tried else ", then the time was over")
    parts += [Text(""), heading("Moves that help most", f"each alone, all other jobs stay; {note}")]
    if review.moves:
        table_rows = [
            [move.kind, move.job, _nodes(move.nodes), number(move.gain_value), number(move.gain_cost)]
            for move in review.moves
        ]
        parts.append(TextTable(["", "job", "to", ">value gained", ">cost saved"], table_rows, wrap="to"))
    else:
        parts.append(Text("  none"))
    return [*parts, took(review.seconds)]


def _cost_gap(review: Review) -> str:
    """Return the gap of the cost; a dash for plans of different value, whose costs do not compare."""
    if review.cost is None or review.cost_bound is None or review.value != review.best_value:
        return "-"
    return percent(abs(review.cost - review.cost_bound) / max(1, abs(review.cost)))


def _nodes(workers_on: Mapping[str, int]) -> str:
    return listed([node if workers == 1 else f"{node} x {workers}" for node, workers in workers_on.items()], NODES)
