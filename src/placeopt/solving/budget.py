"""What a round may use: clock, work, memory and threads; and what that leaves each stage and each solve."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from placeopt.errors import OutOfTime, PlaceoptError
from placeopt.model.plan import PlanLimit
from placeopt.solvers.racing import RACE, RACERS
from placeopt.solvers.result import SolveOptions
from placeopt.solving.params import SolveParams

LIMITS: tuple[PlanLimit, ...] = ("none", "size", "work", "time", "memory", "user")
"""What cut a round short, from the weakest reason to the strongest, which the plan states."""

SLICE_ENDS_S = (0.3, 1.0)
"""
Where the first two slices of work end in deterministic mode, in seconds of time limit that the work stands for; the
next two end at ten times that, and so on. A limit works off the slices that end by then, the first in any case: so
every limit works off a prefix of one sequence. Slices of twice the length each took twice the work for plans no better.
"""


def slice_end_s(number: int) -> float:
    """Return where slice ``number`` ends, from 0 on; 0 for -1."""
    tens, which = divmod(number, len(SLICE_ENDS_S))
    return SLICE_ENDS_S[which] * 10.0**tens if number >= 0 else 0.0


def solver_of(solver: str, params: SolveParams, threads: int) -> str:
    """
    Return the solver that runs where a method names ``solver``.

    Only a race changes: CP-SAT in deterministic mode, because its deterministic time keeps pace with the clock while
    HiGHS's work stands still at the root; HiGHS with one thread, or with options meant for one solver.
    """
    if solver != RACE:
        return solver
    if params.deterministic:
        return "cpsat"
    return RACERS[0] if threads == 1 or params.solver_options else RACE


@dataclass
class Budget:
    """
    What a round may use, and what cut it short. Times are of ``time.monotonic()``.

    In deterministic mode work ends a stage, and the deadline is only a guard. That is decided here: stages state
    what they need and take what they get. Whatever they do not get for lack of time is noted here, too: so a plan
    whose limit is ``none`` is the plan that more time gives.
    """

    params: SolveParams
    started: float
    deadline: float
    """Where stages end; the final check comes after."""
    threads: int = 1
    cancelled: Callable[[], bool] | None = None
    limit: PlanLimit = "none"
    """What cut the round short."""
    check_s: float = 0.0
    """Seconds spent so far on building and checking plans."""
    slice: int = 0
    """Number of the slice of work, from 0; only in deterministic mode there is more than one."""
    offer_s: float = 0.0
    """Seconds that building and checking the latest plan took."""

    @property
    def ends(self) -> float:
        """When the whole call is due."""
        return self.started + self.params.time_limit_s

    @property
    def left_s(self) -> float:
        """Seconds until the deadline, at least 0."""
        return max(0.0, self.deadline - time.monotonic())

    @property
    def reserve_s(self) -> float:
        """Seconds reserved between the deadline of the stages and the end of the call."""
        return self.ends - self.deadline

    def reserve(self, seconds: float) -> None:
        """Set the deadline so that ``seconds`` are left for what comes after the stages."""
        self.deadline = self.ends - seconds

    @property
    def work_s(self) -> float:
        """
        The seconds of time limit that the work of all slices so far stands for: that of a solve which begins again.

        In deterministic mode that does not depend on the limit.
        """
        return slice_end_s(self.slice) if self.params.deterministic else self.params.time_limit_s

    def begin_slice(self) -> bool:
        """Begin the next slice of deterministic work; whether the limit has room for all of it."""
        if not self.params.deterministic or slice_end_s(self.slice + 1) > self.params.time_limit_s or self.stopped():
            return False
        self.slice += 1
        return True

    def note_limit(self, limit: PlanLimit) -> None:
        """Note what cut the round short; the strongest reason stays."""
        if LIMITS.index(limit) > LIMITS.index(self.limit):
            self.limit = limit

    def stopped(self) -> bool:
        """Tell whether the user cancelled or the deadline has passed, and note which."""
        if self.limit == "user" or (self.cancelled is not None and self.cancelled()):
            self.note_limit("user")
            return True
        if self.left_s <= 0:
            self.note_limit("time")
            return True
        return False

    def stop_reason(self) -> str | None:
        """Return why no further stage begins, None if one may."""
        return f"stopped by {self.limit}" if self.stopped() else None

    def until(self, share: float = 1.0, *, reserve_s: float = 0.0, least_s: float = 0.0) -> float:
        """
        Return when a part of the round has to end.

        That is after ``share`` of the time left, and ``reserve_s`` before the deadline, but not sooner than in
        ``least_s``. In deterministic mode it is the deadline: work ends the part, and the clock is only a guard.
        """
        now, ends = time.monotonic(), self.deadline
        if not self.params.deterministic:
            ends = min(now + share * self.left_s, self.deadline - reserve_s)
        return max(ends, now + least_s)

    @contextmanager
    def heuristic(self, share: float = 1.0, *, reserve_s: float = 0.0, least_s: float = 0.0) -> Iterator[float]:
        """Yield when a heuristic has to end, see `until`, and note the limit if it is at work until then."""
        ends = self.until(share, reserve_s=reserve_s, least_s=least_s)
        yield ends
        if time.monotonic() >= ends:
            self.note_limit("time")

    @contextmanager
    def until_out_of_time(self) -> Iterator[None]:
        """Go on after the block where time ends it, and note that."""
        try:
            yield
        except OutOfTime as error:
            self.note_error(error)

    def note_error(self, error: PlaceoptError) -> None:
        """Note the limit where the error that ended a part of the round is `OutOfTime`: the clock, or the user."""
        if not self.stopped() and isinstance(error, OutOfTime):
            self.note_limit("time")

    def has_left(self, seconds: float) -> bool:
        """Tell whether more is left than ``seconds``, and note it if not; always true where work ends the stages."""
        enough = self.params.deterministic or self.left_s > seconds
        if not enough:
            self.note_limit("time")
        return enough

    def is_past(self, moment: float) -> bool:
        """Tell whether the clock has passed ``moment``, where work has to end; never in deterministic mode."""
        return not self.has_left(self.deadline - moment)

    def steps(self, per_second: float) -> int:
        """Return the steps that a stage may take in this slice: ``per_second`` of its work in deterministic mode."""
        if not self.params.deterministic:
            return sys.maxsize
        return int(per_second * self.work_s) - int(per_second * slice_end_s(self.slice - 1))

    @property
    def integer_solver(self) -> str:
        """The solver of small integer models inside stages."""
        return "cpsat" if self.params.deterministic else "highs"

    def options(self, work: float, seconds: float | None = None, deadline: float | None = None) -> SolveOptions:
        """
        Return the options of a solve on one thread.

        - ``work``: Deterministic work that ends it in deterministic mode.
        - ``seconds``: Seconds that end it otherwise; None for all until the deadline.
        - ``deadline``: Of a stage that has its own; None for that of the round.
        """
        left = self.left_s if deadline is None else max(0.0, deadline - time.monotonic())
        deterministic = self.params.deterministic
        return SolveOptions(
            time_limit_s=left if seconds is None or deterministic else min(seconds, left),
            seed=self.params.seed,
            deterministic=deterministic,
            work_limit=work if deterministic else None,
            memory_limit_mib=self.params.memory_limit_mib,
        )

    def seconds_since(self, moment: float) -> float | None:
        """Return the seconds that a plan states; None in deterministic mode."""
        return None if self.params.deterministic else time.monotonic() - moment
