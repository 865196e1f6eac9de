"""Numbers as people read them; files and ``--json`` keep plain numbers in the units of their names."""

from __future__ import annotations

from math import floor, log10

MINUTE_S, HOUR_S, DAY_S = 60, 3_600, 86_400
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
