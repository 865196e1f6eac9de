"""Results of replays: a row for every run, a series for every question."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from placeopt.model.base import FormatVersion, Id, Name, Record
from placeopt.readable import amount, plural
from placeopt.view import Cell, Chart, Column, Figure, Table, View
from placeopt.view.records import Better, Unit, Verdict

MET = {True: "yes", False: "no", None: "not known"}


class MeasuredRun(Record):
    """One run of a scenario under a policy; the answer in a line of the file of rows."""

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
    question: Literal["add", "compare"]
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

    def view(self) -> View:
        """Return a row for each setting that was played; of ``add``, the number of nodes found."""
        title, verdict = self._words()
        unit, better = UNITS.get(self.unit, ""), self._better
        measured = Column(name=self.measure, unit=unit, better=better)
        spread = (Column(name="from", unit=unit), Column(name="to", unit=unit)) if self.draws else ()
        draws = tuple(Column(name=f"draw {draw}", unit=unit) for draw in self.draws)
        rows = [
            (
                int(spot.setting) if spot.setting.isdecimal() else spot.setting,
                spot.nodes,
                None if spot.price_milli_per_hour is None else spot.price_milli_per_hour / 1000,
                spot.gpus,
                spot.stranded,
                *map(self._scaled, (spot.mean, spot.low, spot.high) if self.draws else (spot.mean,)),
                *(map(self._scaled, spot.values) if self.draws else ()),
                *((MET[spot.met],) if self.goal is not None else ()),
            )
            for spot in self.spots
        ]
        met = (Column(name="met"),) if self.goal is not None else ()
        table = Table(
            name="Settings",
            columns=(Column(name=self.replayed), *OF_CLUSTER, measured, *spread, *draws, *met),
            rows=tuple(rows),
            note=f"{self.scenario} under {self.policy}",
        )
        return View(
            title=title,
            verdict=verdict,
            proof="simulated, not proven",
            figures=(
                Figure(name="nodes more", value=self.found, better="less"),
                Figure(name="not with", value=self.missed),
                Figure(name="kept", value=self.kept),
                Figure(name="not examined", value=self.left, better="less"),
                Figure(name="seconds", value=self.seconds, unit="s"),
            ),
            notes=tuple(self._notes()),
            tables=(table,),
            chart=Chart(kind="intervals", table=table.name, x=self.replayed, y=("from", "to"))
            if self.draws
            else Chart(kind="lines", table=table.name, x=self.replayed, y=(self.measure,)),
        )

    @property
    def _better(self) -> Better:
        return "more" if self.unit == "%" else "less"

    def _scaled(self, value: float | None) -> Cell:
        """Return a value in the unit of its column: percent as parts of 1."""
        return value if value is None or self.unit != "%" else value / 100

    def _words(self) -> tuple[str, Verdict]:
        """Return the title, and how it is read."""
        if self.question == "compare":
            return f"{self.measure} by {self.replayed}: {plural(len(self.spots), 'setting')}", ""
        kind = self.replayed.partition(":")[2]
        if not self.spots:
            return f"{self.goal}: not known, stopped before any number of nodes was simulated", "open"
        if self.found is None:
            most = max(int(spot.setting) for spot in self.spots)
            return f"{self.goal} is not met with up to {plural(most, 'more node')} like {kind}", "bad"
        remark = "no node needed" if not self.found else "" if self.missed is None else f"not with {self.missed:,}"
        price = f"price {amount(self.found * (self.price_milli_per_hour or 0) / 1000)} an hour"
        hours = f"{self.found * (self.gpus or 0):,} GPU hours"
        said = "; ".join(filter(None, (remark or "met with every number tried", price, hours)))
        return f"{self.goal} met with {plural(self.found, 'more node')} like {kind}: {said}", "good"

    def _notes(self) -> Iterator[str]:
        if self.draws:
            yield f"mean of {len(self.draws)} draws and its 95 % interval"
        if self.monotone is False:
            yield "more nodes made it worse somewhere: fewer than the number found may be enough"
        if cut := sum(spot.cut for spot in self.spots):
            yield f"{plural(cut, 'round')} stopped by the time limit: another run may differ"
        if self.left:
            yield "stopped before its end"


UNITS: dict[str, Unit] = {"s": "s", "%": "fraction"}
OF_CLUSTER = (
    Column(name="nodes", better="less"),
    Column(name="price an hour", better="less"),
    Column(name="GPUs"),
    Column(name="never end", better="less"),
)
