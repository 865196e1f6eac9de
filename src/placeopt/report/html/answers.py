"""Figures of what-if answers, by the type of the answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from placeopt.formats.figure import Figure
from placeopt.report.html.failures import failures_figure
from placeopt.report.html.whatif_amounts import (
    added_figure,
    cheapest_figure,
    fit_figure,
    prices_figure,
    review_figure,
    slots_figure,
    swap_figure,
)
from placeopt.report.html.whatif_curves import curve_figure, front_figure, sweep_figure
from placeopt.simulation.replay.series import ReplaySeries
from placeopt.whatif.answers import (
    Cheapest,
    Defrag,
    Failures,
    Fit,
    NodesNeeded,
    Prices,
    Review,
    Slots,
    Swap,
    Sweep,
)

WhatIfAnswer = Fit | Slots | Failures | NodesNeeded | Cheapest | Sweep | Swap | Prices | Defrag | Review | ReplaySeries
DRAWN: dict[type, tuple[str, Callable[[Any, str], Figure]]] = {
    Fit: ("fit", fit_figure),
    Slots: ("slots", slots_figure),
    Failures: ("failures", failures_figure),
    NodesNeeded: ("add", added_figure),
    Cheapest: ("cheapest", cheapest_figure),
    Sweep: ("sweep", sweep_figure),
    Swap: ("swap", swap_figure),
    Prices: ("prices", prices_figure),
    Defrag: ("front", front_figure),
    Review: ("audit", review_figure),
    ReplaySeries: ("replay", curve_figure),
}
"""Type of answer -> name of its figure, and the function that makes it."""
MARKS: tuple[tuple[frozenset[str], type[WhatIfAnswer]], ...] = (
    (frozenset({"replayed", "spots"}), ReplaySeries),
    (frozenset({"varied", "points"}), Sweep),
    (frozenset({"front", "level"}), Defrag),
    (frozenset({"scenarios", "k"}), Failures),
    (frozenset({"node_type", "tried"}), NodesNeeded),
    (frozenset({"choices", "best"}), Cheapest),
    (frozenset({"exchanged", "before"}), Swap),
    (frozenset({"prices", "value"}), Prices),
    (frozenset({"gangs", "most"}), Fit),
    (frozenset({"counts", "free_gpus"}), Slots),
    (frozenset({"valid", "count"}), Review),
)
"""Fields that identify a type of answer."""


def answer_type(keys: set[str]) -> type[WhatIfAnswer] | None:
    """Return the type of answer of a document with these fields; None if it is no answer."""
    return next((kind for fields, kind in MARKS if fields <= keys), None)


def answer_figures(answer: WhatIfAnswer, number: int) -> list[Figure]:
    """Return the figures of one answer; ``number`` makes their names unique."""
    name, draw = DRAWN[type(answer)]
    return [draw(answer, f"{name}-{number}")]
