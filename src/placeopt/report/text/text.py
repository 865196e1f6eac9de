"""Counts, shares and names as people read them; `placeopt.readable` has amounts and durations."""

from __future__ import annotations

from placeopt.errors import printable


def number(value: int | None) -> str:
    """Write an integer with separators; unknown is a dash."""
    return "-" if value is None else f"{value:,}"


def percent(fraction: float | None) -> str:
    """Write a fraction as a percentage of three digits that count; unknown is a dash, and only 0 is 0."""
    if fraction is None:
        return "-"
    value = 100 * fraction
    if value == 0:
        return "0 %"
    if abs(value) < 0.001:
        return "<0.001 %"
    return f"{value:.3f} %" if abs(value) < 1 else f"{value:.2f} %" if abs(value) < 10 else f"{value:.1f} %"


def gpus(milli: int) -> str:
    """Write GPU-milli as GPUs: 2, 0.25."""
    whole, part = divmod(milli, 1000)
    return f"{whole:,}" if part == 0 else f"{milli / 1000:,.3f}".rstrip("0")


def plural(count: int, noun: str) -> str:
    """Write a count and its noun: 1 job, 2 jobs."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def plain(text: str) -> str:
    """Make text harmless for one line of a terminal: what cannot be printed, and line breaks, become escapes."""
    return printable(text).replace("\n", "\\n")


def shorten(text: str, width: int) -> str:
    """Cut text to ``width`` characters, the middle left out, so that numbered names stay apart."""
    if len(text) <= width:
        return text
    head = (width - 1) // 2
    return f"{text[:head]}…{text[len(text) - (width - 1 - head) :]}"
