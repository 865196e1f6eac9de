"""What a stage of a round is: a condition, and a run that reports what it did."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

from placeopt.model.plan import StageOutcome
from placeopt.solving.incumbent import Offer, Refused

if TYPE_CHECKING:
    from placeopt.solving.context import SolveContext

LevelName = Literal["value", "cost"]


class StatedReason(str):
    """A reason for skipping a stage that the plan states; others stand in ``SolveContext.skipped`` only."""


@dataclass(frozen=True)
class StageReport:
    """What a stage did, or one step of it."""

    detail: str = ""  # what was done, in words
    outcome: StageOutcome | None = None
    """None: ``improved`` if the incumbent changed during the stage, else ``proved`` or ``kept``."""
    proved: bool = False  # whether the stage proved something, where ``outcome`` is None
    level: LevelName = "value"  # the level that it worked on: objective and bound in the plan are those
    step: str | None = None  # name of the step; None for the stage's own
    offer: Offer | None = None
    """What came of the latest allocation offered; one that is `Refused` makes the outcome ``failed``."""

    @property
    def refusal(self) -> str | None:
        """The complaint of the referee, None where there is none."""
        return self.offer.why if isinstance(self.offer, Refused) else None


class Stage(Protocol):
    """
    One stage of a round.

    It can only replace the best plan by a checked, better one, or move a bound. Times, records and faults are the
    runner's.
    """

    @property
    def name(self) -> str:
        """The name that plans state."""
        ...

    @property
    def uses_solver(self) -> bool:
        """Whether it solves a model."""
        ...

    def skip_reason(self, context: SolveContext) -> str | None:
        """Return why the stage has nothing to do in this round at this point, None if it runs."""
        ...

    def run(self, context: SolveContext) -> Iterator[StageReport]:
        """Do the work, and yield a report for every step that the plan states."""
        ...


@dataclass(frozen=True)
class Block:
    """Stages that run one after the other under one condition, which is looked at once."""

    name: str  # what logs call it
    stages: tuple[Stage, ...]  # the stages in their order
    skip_reason: Callable[[SolveContext], str | None]
    """Returns why none of them runs in a round at this point, None if they do."""
