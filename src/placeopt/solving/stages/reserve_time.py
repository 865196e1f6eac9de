"""Time is reserved for the end of the round, by what building and checking the first plan took."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from placeopt.formats.gc_pause import gc_paused
from placeopt.solving.context import SolveContext
from placeopt.solving.stage import StageReport

RESERVE_S = 0.02
RESERVE_PER_JOB_S = 30e-6
"""Seconds reserved for a first plan, reasons, the final check and the audit, fixed and per job; measured, generous."""
RESERVE_PER_COMPILE = 3.5
"""The same as a multiple of what compiling took in this round: it holds where the machine is busy with other work."""
RESERVE_PER_WAITING = 0.5
"""
Share of what a placed job took that is reserved for every job that waits, up to as much as all placed ones took. The
end took 0.5 to 0.7 offers where nearly all jobs are placed, up to 2 where four of five wait; gangs that wait have a
time limit of their own.
"""


def first_reserve_s(num_jobs: int, compile_s: float) -> float:
    """Return the seconds to reserve before anything was offered."""
    return max(RESERVE_S + RESERVE_PER_JOB_S * num_jobs, RESERVE_PER_COMPILE * compile_s)


@dataclass(frozen=True)
class ReserveTime:
    """Checks the first plan if no stage did, and reserves its duration, scaled by up to 2 as more jobs wait."""

    name: ClassVar[str] = "reserve"
    uses_solver: ClassVar[bool] = False

    def skip_reason(self, context: SolveContext) -> None:
        """Never: the first plan has to be checked before others build on it."""

    def run(self, context: SolveContext) -> Iterator[StageReport]:
        """Set the deadline of later stages; the plan does not state that."""
        with gc_paused():
            context.incumbent.read()
        placed = sum(placement is not None for placement in context.incumbent.allocation)
        waiting = context.problem.num_jobs - placed
        offers = 1 + min(1.0, RESERVE_PER_WAITING * waiting / max(placed, 1))
        context.budget.reserve(RESERVE_S + offers * context.budget.offer_s)
        yield from ()
