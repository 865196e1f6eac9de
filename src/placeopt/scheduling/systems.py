"""Systems of papers: rooms of rules, policies and scenarios, found through entry points, so that no floor names one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import entry_points
from importlib.resources.abc import Traversable
from typing import Any

GROUP = "placeopt.systems"
"""Group of entry points; each is a `System`."""


@dataclass(frozen=True)
class System:
    """
    A system: importing its room registers its rules.

    Attributes
    ----------
    paper
        Citation of the paper that describes it.
    policies
        Folder of its policies, ``NAME.json``; None: there are none.
    scenarios
        Name -> function from a seed to a scenario (`placeopt.simulation.Scenario`), small enough for a first look.
    """

    paper: str
    policies: Traversable | None = None
    scenarios: Mapping[str, Callable[[int], Any]] = field(default_factory=dict)


@cache
def load_systems() -> Mapping[str, System]:
    """Return the systems that are installed, by name."""
    found = sorted(entry_points(group=GROUP), key=lambda entry: entry.name)
    return {entry.name: entry.load() for entry in found}
