"""Cells of a view as people read them; in files they stay plain numbers."""

from __future__ import annotations

from placeopt.readable import amount, duration, gpus, number, percent, plain
from placeopt.view.records import Cell, Unit

UNKNOWN = "-"
MIB_PER_GIB = 1024


def words(value: Cell, unit: Unit = "") -> str:
    """Return a cell as text on one line."""
    if value is None:
        return UNKNOWN
    if isinstance(value, str):
        return plain(value)
    match unit:
        case "gpu_milli":
            return gpus(round(value))
        case "cpu_millicores":
            return amount(value / 1000)
        case "mib":
            return f"{amount(value / MIB_PER_GIB)} GiB"
        case "s":
            return duration(value)
        case "ms":
            return duration(value / 1000)
        case "fraction":
            return percent(value)
        case "change":
            return f"{'+' if value > 0 else ''}{amount(value)}"
    return number(value) if isinstance(value, int) else amount(value)
