"""What is compared: settings to simulate, figures that a paper reports, orders of policies; and the rows of runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, Protocol

from pydantic import Field

from placeopt.arguments import MAX_SEED
from placeopt.model.base import Name, Record
from placeopt.model.scenario import Scenario
from placeopt_papers.one_at_a_time.protocol import OneAtATime

ONCE = (0,)
"""Seeds of a setting of which nothing is drawn."""
WHOLE_ROUND_POLICIES = ("placeopt", "placeopt-jct")
OWN = (*WHOLE_ROUND_POLICIES, "placeopt-queue", "prices")
"""
What is compared with all others, in every setting where it is played: policies, and of jobs one at a time a score.
"""


@dataclass(frozen=True)
class PaperSetting:
    """
    What is played by seed, a scenario or jobs one at a time, and the policies that play it.

    Attributes
    ----------
    name, title
        For files and for people.
    make
        By the seed, the folder of stored scenarios, and whether it is wanted in full size.
    policies
        Names; those that do not exist yet are left out and told of.
    measures
        Keys of ``measures.MEASURES`` in which ``OWN`` are compared with the others.
    seeds
        Those that are played whatever is asked for; (0,): nothing is drawn. Empty: those that are asked for.
    seeds_most, whole_seeds
        Of those that are asked for the first ones, where a seed takes minutes; those of ``WHOLE_ROUND_POLICIES``.
    reduced
        What is smaller than in the paper unless full size is asked for; empty: nothing.
    timeline
        Whether bars by GPU are drawn for every policy.
    one_at_a_time
        Whether it is jobs one at a time; policies are scores of greedy then.
    needs
        A file or folder of somebody else's below the folder of scenarios, without which it is left out.
    """

    name: str
    title: str
    make: Callable[[int, Path, bool], Scenario | OneAtATime]
    policies: tuple[str, ...]
    measures: tuple[str, ...]
    seeds: tuple[int, ...] = ()
    seeds_most: int | None = None
    whole_seeds: int | None = None
    reduced: str = ""
    timeline: bool = False
    one_at_a_time: bool = False
    needs: str = ""

    @property
    def seeded(self) -> bool:
        """Whether anything is drawn."""
        return self.seeds != ONCE

    def played(self, policy: str, asked: Sequence[int]) -> Sequence[int]:
        """Return the seeds that a policy plays, of those asked for."""
        played = self.seeds or asked[: self.seeds_most]
        return played[: self.whole_seeds] if policy in WHOLE_ROUND_POLICIES else played


class SeedValues(Protocol):
    """Figures of runs, seed by seed."""

    def values(self, setting: str, policy: str, measure: str, beside: Sequence[str] = ()) -> list[float] | None:
        """
        Return one value a seed, in the order of seeds, of those that ``beside`` have too.

        None where there is no such run, or one has no such figure.
        """


class FigureMetric(Protocol):
    """How one of our figures comes out of runs."""

    @property
    def needs(self) -> tuple[tuple[str, str], ...]:
        """(setting, policy) of the runs it is made of."""

    def of(self, results: SeedValues) -> list[float] | None:
        """Return the figure, one value a seed; None where a run is missing."""


@dataclass(frozen=True)
class ReportedFigure:
    """
    A figure that a paper reports.

    Attributes
    ----------
    name
        Of its row.
    paper, place
        Key of ``catalogue.PAPERS``; section, table or figure.
    what, unit
        For people.
    reported
        The paper's value.
    way
        How ours is made; None where nothing here can make it yet.
    reason
        Why ours differs, where it does: data that are missing, physics, a reading.
    """

    name: str
    paper: str
    place: str
    what: str
    unit: str
    reported: float
    way: FigureMetric | None
    reason: str = ""


@dataclass(frozen=True)
class Ordering:
    """
    The order in which a paper ranks policies by a measure, best first.

    ``ranks``: groups of policies that the paper calls alike. ``more``: more is better.
    """

    paper: str
    place: str
    setting: str
    measure: str
    ranks: tuple[tuple[str, ...], ...]
    more: bool = False
    reason: str = ""
    """Why it does not hold, where it does not."""


class PaperCase(Record):
    """One simulation."""

    setting: Name
    policy: Name
    seed: Annotated[int, Field(ge=0, le=MAX_SEED)]
    whole: bool = False
    """In the paper's full size, where the setting is reduced otherwise."""


class PaperRow(Record):
    """What came of it."""

    case: PaperCase
    scenario: str
    """Digest of the scenario."""
    scheduling: str
    """Digest of the policy."""
    version: str
    figures: dict[str, float | None]
    """Key of ``measures.MEASURES`` -> value."""
    waits_s: tuple[float, ...] = ()
    """Percentiles 0 to 100 of waiting times."""
    slowdowns: tuple[float, ...] = ()
    """Percentiles 0 to 100 of slowdowns with waiting."""
    held: tuple[tuple[float, float], ...] = ()
    """Hours since the first arrival, part of the GPUs' time granted in the strip up to then."""
    cpu_s: float
    """Of the simulation, this process alone; the machine may have been loaded."""
    jobs: int = 0
    never_end: int = 0
    """Jobs that never end; then figures of all jobs are None, for there is no mean over them."""
    why: str = ""
    """The first of them, and why."""


class CampaignStart(Record):
    """One start of the command."""

    began: str
    command: str
    machine: dict[str, str]
    versions: dict[str, str]


class ResultLine(Record):
    """A line of the results: one of the two."""

    start: CampaignStart | None = None
    row: PaperRow | None = None


Verdict = Literal["holds", "tie", "reversed", "missing"]
