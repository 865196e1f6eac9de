"""What policies believe: settings with twice wrong estimates, and with what is measured; the rows of their table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pkgutil import resolve_name
from typing import Any

from placeopt.simulation import Scenario, with_drawn_errors
from placeopt_papers.settings import read_data

FACTOR = 2.0
"""By which estimates are too high or too low."""


def believed(*, seed: int, scenario: str, wrong: Sequence[str] = (), telemetry: bool = False, **words: Any) -> Scenario:
    """
    Return the scenario that ``scenario``, module and function, makes with ``words``, with other beliefs.

    ``wrong``: fields of estimates that are ``FACTOR`` times too high or too low, by profile; ``telemetry``:
    whether what is measured of a job that ends corrects those of its profile that have not started.
    """
    made: Scenario = resolve_name(scenario)(seed=seed, **words)
    if wrong:
        made = with_drawn_errors(made, FACTOR, seed, wrong)
    return made.model_copy(update={"physics": made.physics.model_copy(update={"telemetry": telemetry})})


@dataclass(frozen=True)
class Beliefs:
    """
    A measure of policies in the settings of one scenario, which differ in what is believed.

    ``perfect``, ``predicted``, ``twice`` wrong; and both with what is measured, ``predicted_measured`` and
    ``twice_measured``, empty where no job has a profile by which it would correct another.
    """

    measure: str
    policies: tuple[str, ...]
    perfect: str
    predicted: str
    twice: str
    predicted_measured: str = ""
    twice_measured: str = ""

    @property
    def settings(self) -> tuple[str, ...]:
        """Settings in the order of the table's columns; empty: none."""
        return self.perfect, self.predicted, self.predicted_measured, self.twice, self.twice_measured


@cache
def beliefs() -> tuple[Beliefs, ...]:
    """Return the rows of the table, from ``data/estimates.toml``."""
    return tuple(Beliefs(**{**one, "policies": tuple(one["policies"])}) for one in read_data("estimates.toml")["rows"])
