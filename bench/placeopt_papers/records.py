"""Records: settings to simulate, figures that a paper reports, orders of policies, and the rows of a campaign."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated, Literal, Protocol

from pydantic import Field

from placeopt.arguments import MAX_SEED
from placeopt.model import Record, Scenario
from placeopt.model.base import Name
from placeopt_papers.one_at_a_time.protocol import OneAtATime
from placeopt_papers.scenarios.factors import UNCHANGED, Factors

ONCE = (0,)
"""Seeds of a setting without random draws."""
WHOLE_ROUND_POLICIES = ("placeopt-rounds", "placeopt-jct")
"""placeopt's policies that solve every round whole, which takes longest."""
COMPARED = ("placeopt", *WHOLE_ROUND_POLICIES)
"""Those of placeopt's own policies that every setting plays unless they take too long there."""
Kind = Literal["artifact", "independent", "fitted", "input", "no data"]
KINDS: dict[Kind, str] = {
    "artifact": "measured by their artifact: the authors' public artifact gave the paper's value, or times of ours",
    "independent": "ours follows from what the paper or a public trace states; no constant was chosen for it",
    "fitted": "a constant of ours was chosen with this figure in view; the sensitivity table names and varies it",
    "input": "the figure, or what alone decides it, is put into the scenario",
    "no data": "the paper's measurements are not public and ours has no model of it: no value of ours",
}
"""Where our value of a figure comes from."""
OWN = (*COMPARED, "placeopt-queue", "prices")
"""placeopt's own policies and scores, compared with all others in every setting that plays them."""


class MakesScenario(Protocol):
    """Makes the scenario of a setting."""

    def __call__(self, seed: int, folder: Path, whole: bool, factors: Factors = UNCHANGED) -> Scenario | OneAtATime:
        """``folder``: of stored scenarios; ``whole``: in full size; ``factors``: on constants of the scenario."""


@dataclass(frozen=True)
class PaperSetting:
    """
    A scenario, or a list of jobs placed one at a time, by seed, with the policies that play it.

    Attributes
    ----------
    name, title
        Name in files, and title on the page.
    make
        Makes it from the seed, the folder of stored scenarios, whether full size is wanted, and factors on constants.
    policies
        Names; those that do not exist yet are left out and listed as missing.
    measures
        Keys of ``measures.MEASURES`` in which ``OWN`` are compared with the others.
    seeds
        Fixed seeds; (0,) without random draws. Empty: the requested seeds.
    seeds_most, whole_seeds
        Limits on the number of requested seeds, where a seed takes minutes: for all policies, and for
        ``WHOLE_ROUND_POLICIES``.
    reduced
        What is smaller than in the paper unless full size is requested; empty: nothing.
    timeline
        Whether bars by GPU are drawn for every policy.
    one_at_a_time
        Whether jobs are placed one at a time; policies are scores of greedy then.
    needs
        A file or folder of third parties below the folder of scenarios, without which the setting is left out.
    """

    name: str
    title: str
    make: MakesScenario
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
        """Whether the setting has random draws."""
        return self.seeds != ONCE

    def played(self, policy: str, asked: Sequence[int]) -> Sequence[int]:
        """Return the seeds that a policy plays, of the requested ones."""
        played = self.seeds or asked[: self.seeds_most]
        return played[: self.whole_seeds] if policy in WHOLE_ROUND_POLICIES else played


class SeedValues(Protocol):
    """Values of measures, seed by seed."""

    def values(self, setting: str, policy: str, measure: str, beside: Sequence[str] = ()) -> list[float] | None:
        """
        Return one value per seed, in the order of seeds, of the seeds that all of ``beside`` have too.

        None if there is no such row, or a row lacks the measure.
        """


class FigureMetric(Protocol):
    """Computes one of our figures from the rows of a campaign."""

    @property
    def needs(self) -> tuple[tuple[str, str], ...]:
        """(setting, policy) of the rows it uses."""

    @property
    def measure(self) -> str:
        """Key of ``measures.MEASURES`` of these rows; empty without rows."""

    def renamed(self, setting_of: Callable[[str], str]) -> FigureMetric:
        """Return the same metric of other settings."""

    def of(self, results: SeedValues) -> list[float] | None:
        """Return the figure, one value per seed; None if a row is missing."""


@dataclass(frozen=True)
class Constant:
    """
    A constant of a scenario that was chosen with a paper's figures in view.

    Attributes
    ----------
    name
        In the scenario's module, and in the factors that scale it.
    value
        As it stands.
    chosen
        With which figure in view, and how.
    """

    name: str
    value: str
    chosen: str


@dataclass(frozen=True)
class ReportedFigure:
    """
    A figure that a paper reports.

    Attributes
    ----------
    paper, name, place
        Key of ``catalogue.PAPERS``; name of its row; section, table or figure.
    what, unit
        Description and unit.
    reported
        The paper's value; None where the paper states none.
    metric
        Computes our value; None: ``no data``.
    kind
        Where our value comes from: a key of ``KINDS``.
    reason
        What decides our value, and why it differs if it does: missing data, physics, a reading of the paper.
    constants
        Constants of ours on which the value depends. Those of a ``fitted`` figure were chosen with it in view; for
        other kinds they are varied too, to show how much follows from them.
    said
        What the paper states instead of a single value, such as ``< 5 %``.
    varied
        Whether the sensitivity table varies them for this figure; false where another figure of the same runs shows it.
    headline
        Whether it stands in the short table of ``bench/README.md``.
    """

    paper: str
    name: str
    place: str
    what: str
    unit: str
    reported: float | None
    metric: FigureMetric | None
    kind: Kind
    reason: str
    constants: tuple[Constant, ...] = ()
    _: KW_ONLY
    said: str = ""
    varied: bool = True
    headline: bool = False


@dataclass(frozen=True)
class Ordering:
    """
    The order in which a paper ranks policies by a measure, best first.

    ``ranks``: groups of policies that the paper ranks equal. ``more``: more is better.
    """

    paper: str
    place: str
    setting: str
    measure: str
    ranks: tuple[tuple[str, ...], ...]
    more: bool = False
    reason: str = ""
    """Why the order does not hold here, if it does not."""


class PaperCase(Record):
    """One simulation."""

    setting: Name
    policy: Name
    seed: Annotated[int, Field(ge=0, le=MAX_SEED)]
    whole: bool = False
    """In the paper's full size, where the setting is reduced otherwise."""


class PaperRow(Record):
    """Result of a simulation."""

    case: PaperCase
    scenario: str
    """Digest of the scenario."""
    scheduling: str
    """Digest of the policy."""
    code: str = ""
    """Digest of the code that ran it (``code_digest``); empty in rows of before there was one."""
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
    """CPU time of the simulation in this process; the machine may have been loaded."""
    jobs: int = 0
    never_end: int = 0
    """Jobs that never end; if there are any, measures over all jobs are None."""
    why: str = ""
    """The first of them, and why."""


class CampaignStart(Record):
    """One start of the command."""

    began: str
    command: str
    machine: dict[str, str]
    versions: dict[str, str]


class SameValues(Record):
    """What was found when rows of earlier code were run again with later code: these cases have the same values."""

    earlier: str
    """Digest of the code that ran the rows; empty: of before there was one."""
    later: str
    cases: tuple[PaperCase, ...]


class ResultLine(Record):
    """A line of the results: a start, a row, or a comparison of rows by two versions of the code."""

    start: CampaignStart | None = None
    row: PaperRow | None = None
    same: SameValues | None = None


Verdict = Literal["holds", "tie", "reversed", "missing"]
