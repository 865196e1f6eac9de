"""A trace under several settings."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from pathlib import Path

from placeopt.errors import BadArgument, BadInput
from placeopt.simulation.replay.campaign import OnRun, RunCampaign, point_of
from placeopt.simulation.replay.goals import Goal, measures, refuse_unmeasured, unit_of
from placeopt.simulation.replay.measured_run import ReplayLimits, RunSetup
from placeopt.simulation.replay.series import ReplayPoint, ReplaySeries
from placeopt.simulation.replay.variations import ReplayVariant, parse_settings

__all__ = ["parse_settings", "sweep"]


def sweep(
    varied: str,
    settings: Sequence[ReplayVariant],
    measure: str,
    *,
    goal: Goal | None = None,
    draws: Sequence[int] = (),
    limits: ReplayLimits | None = None,
    rows: Path | None = None,
    jobs: int | None = 1,
    cancel: threading.Event | None = None,
    on_news: OnRun | None = None,
) -> ReplaySeries:
    """
    Simulate every setting with every draw, and return a measure of each.

    Parameters
    ----------
    varied, settings
        As `parse_settings` returns them.
    measure
        One of `placeopt.simulation.replay.goals.measures`.
    goal
        Of that measure; None: settings are not compared with a goal.
    draws, limits, rows, jobs, cancel, on_news
        As of `placeopt.simulation.replay.add`; all runs are carried out side by side.

    Raises
    ------
    BadInput
        If there is no setting or no such measure, or no job has what is measured.
    """
    began = time.monotonic()
    if measure not in measures():
        raise BadArgument(f"measure {measure!r}: expected one of {', '.join(measures())}")
    if len(set(draws)) == 1:
        raise BadArgument("draws: one seed gives no interval; expected none, or two and more")
    if not settings:
        raise BadInput("settings: none")
    for one in settings:
        refuse_unmeasured(one.scenario, measure)
    own = tuple(draws) or (None,)
    setups = [
        RunSetup(one.scenario, one.scheduling, draw, limits or ReplayLimits()) for one in settings for draw in own
    ]
    with RunCampaign(rows, jobs=jobs, cancel=cancel, on_news=on_news) as runs:
        played = runs.rows_of(setups)
        points: list[ReplayPoint] = []
        for number, one in enumerate(settings):
            point = point_of(one.name, played[number * len(own) : (number + 1) * len(own)], measure, goal)
            if point is not None:
                points.append(point)
        return ReplaySeries(
            question="sweep",
            replayed=varied,
            scenario=settings[0].scenario.name,
            policy=settings[0].scheduling.name if varied != "policy" else "several",
            measure=measure,
            unit=unit_of(measure),
            goal=None if goal is None else goal.text,
            draws=tuple(draws),
            spots=tuple(points),
            kept=runs.num_known,
            left=len(settings) - len(points),
            seconds=time.monotonic() - began,
        )
