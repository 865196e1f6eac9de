"""Stages ``value-relaxations``, ``cost-relaxations``: what bounds a level, loose ones first, and makes plans of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from placeopt.solving.context import SolveContext
from placeopt.solving.stage import LevelName, Stage, StageReport, StatedReason, reason_to_skip, run_stage


@dataclass(frozen=True)
class Relaxations:
    """
    Runs relaxations of a level, each of which hands prices and plans on to the next, and to the search.

    They run while anything is open and there is time. A plan states them by their own names.
    """

    level: LevelName
    parts: tuple[Stage, ...]
    uses_solver: ClassVar[bool] = True

    @property
    def name(self) -> str:
        """The name that plans state where all of them are skipped."""
        return f"{self.level}-relaxations"

    def skip_reason(self, context: SolveContext) -> str | None:
        """Only while anything is open, and one of them can do more; stated is what one of them states."""
        if reason := context.budget.stop_reason():
            return reason
        if context.is_closed:
            return "the round is proven, or within the gap"
        reasons = [reason_to_skip(context, part) for part in self.parts]
        found = [reason for reason in reasons if reason is not None]
        if len(found) < len(reasons):
            return None
        return next((reason for reason in found if isinstance(reason, StatedReason)), found[-1])

    def run(self, context: SolveContext) -> Iterator[StageReport]:
        """Run them in their order, each beside the search by itself."""
        for part in self.parts:
            if context.handover.searching is not None:
                context.handover.searching.alone()
            if not (context.is_closed or context.budget.stopped()):
                run_stage(context, part)
        yield from ()
