"""Rooms of systems, found through entry points where a name is not known: no floor names one."""

from collections.abc import Mapping
from functools import cache
from importlib.metadata import entry_points
from typing import Any

GROUP = "placeopt.systems"
"""Group of entry points; each is a `placeopt.scheduling.System`."""


@cache
def load_rooms() -> Mapping[str, Any]:
    """Return what the entry points name, by their names; loading them registers rules and costs."""
    found = sorted(entry_points(group=GROUP), key=lambda entry: entry.name)
    return {entry.name: entry.load() for entry in found}
