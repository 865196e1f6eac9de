"""Why a job waits and what would let it start, or what its place costs: the answer, and how it is shown."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from placeopt.edits import Answer
from placeopt.explain.records import Alternative, BestPlace, Constraint, JobPosition, Outvoted, Remedies
from placeopt.model.base import Id
from placeopt.model.plan import UnplacedReason
from placeopt.view import Column, Figure, Table, View

REMEDY = {
    "workers_max": "fewer workers",
    "domains_min": "other domains",
    "level": "a wider level",
    "preempt": "preempt",
    "changes": "one change",
}


class Explanation(Answer):
    """
    Why a job waits and what would help, or what its place costs and which other one is best.

    ``beside``: whether conflict and remedies hold beside the running jobs that must stay, or beside the plan.
    ``proven``: that every answer in it is proven; what could not be finished in time says so.
    """

    job: Id
    status: Literal["waiting", "placed"]
    reason: UnplacedReason | None = None
    detail: str
    plan_reason: UnplacedReason | None = None
    """What the plan says."""
    beside: Literal["running", "plan"] = "plan"
    conflict: tuple[Constraint, ...] = ()
    outvoted_by: Outvoted | None = None
    best_place: BestPlace | None = None
    """Of a job that has room, but nowhere at its minimal utility."""
    remedies: Remedies = Remedies()
    spot: JobPosition | None = None
    best: Alternative | None = None
    """The best of all places, the present one included."""
    proven: bool
    seconds: float

    def view(self) -> View:
        """Return reason, conflict and remedies of a waiting job; costs and the best place of a placed one."""
        tables = self._of_placed() if self.status == "placed" else self._of_waiting()
        notes = [self.detail]
        if self.reason and self.plan_reason and self.plan_reason != self.reason:
            notes.append(f"the plan says {self.plan_reason}")
        if self.best is not None and self.best.spot is None:
            notes.append(f"best place: {self.best.detail}")
        gains = (
            () if self.best is None else (("value gained", self.best.gain_value), ("cost saved", self.best.gain_cost))
        )
        return View(
            title=f"{self.job}: {self.status}{f', {self.reason}' if self.reason else ''}",
            verdict="open" if not self.proven else "good" if self.status == "placed" else "bad",
            proof=self.proof("every answer is proven" if self.proven else "not every answer is proven"),
            figures=(
                Figure(name="status", value=self.status),
                Figure(name="reason", value=self.reason),
                *(Figure(name=f"{name} by the best place", value=gain, unit="change") for name, gain in gains),
                Figure(name="seconds", value=self.seconds, unit="s"),
            ),
            notes=tuple(notes),
            tables=tuple(table for table in tables if table.rows),
        )

    def _of_waiting(self) -> Iterator[Table]:
        beside = "beside the running jobs that must stay" if self.beside == "running" else "beside the plan"
        yield Table(
            name="Conflict",
            columns=_named("constraint", "requires"),
            rows=tuple((one.name, one.asks) for one in self.conflict),
            note=f"{beside}; without any one of these it fits",
        )
        if (gone := self.outvoted_by) is not None:
            least = "the cheapest jobs that hold" if gone.proven else "some jobs that hold"
            yield Table(
                name="In its place",
                columns=_named("job", "value"),
                rows=tuple((rival.job, rival.value) for rival in gone.jobs),
                note=f"{least} the room it needs; it would be worth {gone.job_value:,}",
            )
        yield Table(
            name="What would help",
            columns=_named("remedy", "smallest change"),
            rows=tuple((REMEDY.get(name, name), said) for name, said in self.remedies.said.items()),
            note="each is enough by itself; nothing smaller is",
        )
        if self.remedies.said or self.conflict:
            why = tuple((REMEDY.get(name, name), said) for name, said in self.remedies.none.items())
            yield Table(name="What would not help", columns=_named("remedy", "because"), rows=why)

    def _of_placed(self) -> Iterator[Table]:
        spots = [("now", self.spot), ("best", None if self.best is None else self.best.spot)]
        yield Table(
            name="Place",
            columns=_named("place", "value", "cost", "nodes"),
            rows=tuple((name, spot.value, spot.cost, spot.workers) for name, spot in spots if spot is not None),
            note="all other jobs stay where they are",
        )
        yield Table(
            name="Its cost",
            columns=_named("term", "raw", "unit", "cost"),
            rows=tuple((one.term, one.raw, one.unit, one.cost) for one in (self.spot.terms if self.spot else ())),
            note="how much each term would fall without the job",
        )


def _named(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name=name) for name in names)
