"""Numbers, shares and names as text for reading; files and ``--json`` keep plain numbers with units in their names."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, log10

from placeopt.errors import printable

HOUR_S, DAY_S = 3_600, 86_400
NAMES_SHOWN = 5
LEAST = 1e-6
"""Smaller amounts are written as such: their digits would fill a line."""


def amount(value: float | None, digits: int = 4) -> str:
    """
    Write a number: separators, at least ``digits`` digits that count, never an exponent; a dash for what is unknown.

    Examples: 1213 is ``1,213``, 0.25 is ``0.25``, 0.000123456 is ``0.0001235``; whole numbers keep all digits.
    """
    if value is None:
        return "-"
    if isinstance(value, int) or value == 0:
        return f"{int(value):,}"
    if value != value or abs(value) == float("inf"):
        return str(value)
    if abs(value) < LEAST:
        return f"between 0 and {'-' if value < 0 else ''}{LEAST:.6f}"
    places = max(0, digits - 1 - floor(log10(abs(value))))
    text = f"{value:,.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def duration(seconds: float | None) -> str:
    """
    Write a duration: ``12.5 ms``, ``0.52 s``, ``3,599.9 s``, ``12.50 h``, ``36.26 d``; a dash for what is unknown.

    From one hour on in hours, from two days on in days of 24 hours: always with three or more digits that count.
    """
    if seconds is None:
        return "-"
    size = abs(seconds)
    if size == 0:
        return "0 s"
    if size < 0.1:
        return f"{1000 * seconds:.1f} ms"
    if size < 10:
        return f"{seconds:.2f} s"
    if size < HOUR_S:
        return f"{seconds:,.1f} s"
    if size < 2 * DAY_S:
        return f"{seconds / HOUR_S:.2f} h"
    return f"{seconds / DAY_S:,.2f} d" if size < 100 * DAY_S else f"{seconds / DAY_S:,.1f} d"


def time_unit(longest_s: float) -> tuple[float, str]:
    """Return the unit for times up to this long, for figures with one unit: its seconds and its name."""
    units = ((2 * DAY_S, DAY_S, "days"), (2 * HOUR_S, HOUR_S, "hours"), (120.0, 60.0, "minutes"))
    return next(((seconds, name) for least, seconds, name in units if longest_s >= least), (1.0, "seconds"))


def number(value: float | None) -> str:
    """Return a number with separators; a dash for unknown."""
    return "-" if value is None else f"{value:,}"


def percent(fraction: float | None) -> str:
    """Return a fraction as a percentage of three significant digits; a dash for unknown; only 0 is written as 0."""
    if fraction is None:
        return "-"
    value = 100 * fraction
    if value == 0:
        return "0 %"
    if abs(value) < 0.001:
        return "<0.001 %"
    return f"{value:.3f} %" if abs(value) < 1 else f"{value:.2f} %" if abs(value) < 10 else f"{value:.1f} %"


def gpus(milli: int) -> str:
    """Return GPU-milli as GPUs: 2, 0.25."""
    whole, part = divmod(milli, 1000)
    return f"{whole:,}" if part == 0 else f"{milli / 1000:,.3f}".rstrip("0")


def plural(count: int, noun: str) -> str:
    """Return a count and its noun: 1 job, 2 jobs."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def of_reading(unread: Sequence[str]) -> str:
    """Say that an answer is one about a reading, and name the first things that were not read."""
    more = f" and {len(unread) - NAMES_SHOWN:,} more" if len(unread) > NAMES_SHOWN else ""
    return f"of what was read of the cluster; not read: {', '.join(map(plain, unread[:NAMES_SHOWN]))}{more}"


def plain(text: str) -> str:
    """Return text that is safe on one line of a terminal: unprintable characters and line breaks are escaped."""
    return printable(text).replace("\n", "\\n")


def shorten(text: str, width: int) -> str:
    """Return text cut to ``width`` characters; the middle is left out, so that numbered names stay distinct."""
    if len(text) <= width:
        return text
    head = (width - 1) // 2
    return f"{text[:head]}…{text[len(text) - (width - 1 - head) :]}"
