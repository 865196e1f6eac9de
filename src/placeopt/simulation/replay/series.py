"""Results of replays: a row for every run, a series for every question."""

from __future__ import annotations

from typing import Literal

from placeopt.model.base import FormatVersion, Id, Name, Record


class MeasuredRun(Record):
    """One run of a scenario under a policy; a line of the file of rows."""

    key: str
    """Digest of scenario, policy, seed and version; equal keys are equal runs."""
    scenario: Name
    policy: Name
    draw: int | None
    """Seed by which arrivals were drawn; None: the trace's own."""
    nodes: int
    jobs: int
    stranded: int
    """Jobs that never start; they wait without end."""
    cut: int
    """Rounds that the time limit cut short; another run may decide otherwise."""
    measures: dict[str, float | None]
    """By name; None where it is infinite, or no job has it."""
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
    True: the whole interval meets the goal; False: none of it does; None: the draws do not decide, or no goal.
    """
    cut: int
    price_milli_per_hour: int | None = None
    """Of the whole cluster."""
    gpus: int | None = None
    """Of the whole cluster: GPU hours an hour."""


class ReplaySeries(Record):
    """A measure at several settings, by replay."""

    document: Literal["replays"] = "replays"
    """What the file is."""
    format_version: FormatVersion = 2
    question: Literal["add", "sweep"]
    replayed: Name
    """The varied quantity: ``nodes:TYPE``, ``arrivals``, ``policy``, ``patch``."""
    scenario: Name
    policy: Name
    measure: Id
    unit: str
    goal: Name | None = None
    draws: tuple[int, ...] = ()
    spots: tuple[ReplayPoint, ...]
    found: int | None = None
    """Of ``add``: the smallest number of nodes tried from which on every number tried meets the goal; None: none."""
    missed: int | None = None
    """The largest number tried that does not meet the goal, below ``found``."""
    monotone: bool | None = None
    """Whether more nodes never made the measure worse; if not, halving may have missed a smaller sufficient number."""
    price_milli_per_hour: int | None = None
    """Of one added node."""
    gpus: int | None = None
    """Of one added node: GPU hours an hour."""
    kept: int = 0
    """Runs that were already in the file of rows before."""
    left: int = 0
    """Settings that were not simulated because of an interruption."""
    seconds: float
