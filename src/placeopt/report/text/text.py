"""Counts, shares and names as text for reading; `placeopt.readable` has amounts and durations."""

from __future__ import annotations

from placeopt.errors import printable


def number(value: int | None) -> str:
    """Return an integer with separators; a dash for unknown."""
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


def plain(text: str) -> str:
    """Return text that is safe on one line of a terminal: unprintable characters and line breaks are escaped."""
    return printable(text).replace("\n", "\\n")


def shorten(text: str, width: int) -> str:
    """Return text cut to ``width`` characters; the middle is left out, so that numbered names stay distinct."""
    if len(text) <= width:
        return text
    head = (width - 1) // 2
    return f"{text[:head]}…{text[len(text) - (width - 1 - head) :]}"
