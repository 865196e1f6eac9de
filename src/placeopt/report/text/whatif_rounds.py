"""Whole rounds under other settings, as text and CSV."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from placeopt.formats.csv_text import csv_text
from placeopt.readable import amount, duration
from placeopt.report.text.palette import BAD, GOOD, SO_SO
from placeopt.report.text.text import gpus, number, percent, plain, plural
from placeopt.report.text.text_table import TextTable, heading
from placeopt.whatif.answers import RoundOutcome

if TYPE_CHECKING:
    from rich.console import RenderableType

    from placeopt.whatif.answers import Prices, Swap, Sweep

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
    return [*parts, _took(found.seconds)]


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
    return [*parts, _took(found.seconds)]


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
    return [*parts, _took(found.seconds)]


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


def _took(spent: float) -> Text:
    return Text(f"\n{duration(spent)}", style="dim")
