"""What replays come to: a row for every run, a curve for every question."""

from __future__ import annotations

from typing import Literal

from placeopt.model.base import FormatVersion, Id, Name, Record


class MeasuredRun(Record):
    """One run of a scenario under a policy; a line of the file of rows."""

    key: str
    """Says what was run: digests of scenario and policy, seed, version. Equal keys, equal runs."""
    scenario: Name
    policy: Name
    draw: int | None
    """Seed by which arrivals were drawn; None: the trace's own."""
    nodes: int
    jobs: int
    stranded: int
    """Jobs that could never start; their waiting has no end."""
    cut: int
    """Rounds that the time limit cut short: another run may decide otherwise."""
    measures: dict[str, float | None]
    """By name; None where it has no end, or nothing to be measured of."""
    seconds: float


class ReplayPoint(Record):
    """One setting, over all draws."""

    setting: Name
    nodes: int
    """Of the whole cluster."""
    values: tuple[float | None, ...]
    mean: float | None
    low: float | None
    high: float | None
    """Student's 95 % interval of the mean over draws; the value itself where there is one run."""
    stranded: int
    """The most in any draw."""
    met: bool | None
    """
    True: the whole interval is on the goal's side; False: none of it is; None: the draws do not tell, or no goal.
    """
    cut: int


class ReplaySeries(Record):
    """
    A measure at one setting after the other, by replay.

    Attributes
    ----------
    found
        Of the question ``add``: the fewest nodes tried from which on the goal is met at every number tried; None: no
        number that was tried is.
    monotone
        Whether more nodes never made the measure worse among those tried; where not, the search by halving may have
        passed a smaller number that does.
    missed
        The largest number tried that does not meet the goal, below ``found``.
    """

    format_version: FormatVersion = 1
    question: Literal["add", "sweep"]
    replayed: Name
    """What is varied: ``nodes:TYPE``, ``arrivals``, ``policy``, ``patch``."""
    scenario: Name
    policy: Name
    measure: Id
    unit: str
    goal: Name | None = None
    draws: tuple[int, ...] = ()
    spots: tuple[ReplayPoint, ...]
    found: int | None = None
    missed: int | None = None
    monotone: bool | None = None
    price_milli_per_hour: int | None = None
    """Of one added node."""
    kept: int = 0
    """Runs that stood in the file of rows already."""
    left: int = 0
    """Settings that were not looked at, for an interruption."""
    seconds: float
