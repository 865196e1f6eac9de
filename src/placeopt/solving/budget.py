"""What a round may use: clock, work, memory and threads; and what that leaves each stage and each solve."""

from __future__ import annotations

import math
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

OF_SLICE: tuple[PlanLimit, ...] = ("work", "time")
"""What the next slice may make good."""

SLICE_ENDS_S = (0.3, 1.0)
"""
Where the first two slices of work end in deterministic mode, in seconds of time limit that the work stands for; the
next two end at ten times that, and so on. A limit works off the slices that end by then, the first in any case: so
every limit works off a prefix of one sequence. Slices of twice the length each took twice the work for plans no better.
"""


STEP_WORK = 1 / 8
"""Deterministic work of a step, per second that its slice stands for: so that work, not the clock, ends the stages."""
WHOLE_WORK = 64.0
"""Deterministic work of a solve that loses all by an end, in units of roughly a second: a guard, hardly one takes 1."""


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
    """Number of the slice, from 0."""
    first_slice_s: float = math.inf
    """Seconds that a step of a stage takes at most in slice 0; in each later one twice as many."""
    slices_began: float = 0.0
    """When slice 0 did."""
    has_one_stage: bool = False
    """Whether one stage is left that can do more: then its steps may take all of the time."""
    lasting: PlanLimit = "none"
    """What cut the round short for good; the rest of ``limit`` is of this slice."""
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

    @property
    def step_s(self) -> float:
        """Seconds that a step of a stage takes at most in this slice, where it loses nothing by an end."""
        return self.left_s if self.has_one_stage else min(math.ldexp(self.first_slice_s, self.slice), self.left_s)

    def step_ends(self) -> float:
        """Return when a step of a stage that begins now has to end; in deterministic mode work ends it before."""
        return self.deadline if self.params.deterministic else time.monotonic() + self.step_s

    def begin_slices(self) -> None:
        """Begin slice 0: its steps are as long as all has taken so far, so the scale is that of the round itself."""
        self.slices_began, self.lasting = time.monotonic(), self.limit
        self.first_slice_s = self.slices_began - self.started

    def next_slice(self) -> bool:
        """
        Begin the next slice; whether there is time for it, and room for all its work in deterministic mode.

        By the clock it is no longer than the one before where that was not used up.
        """
        if self.stopped() or (self.params.deterministic and slice_end_s(self.slice + 1) > self.params.time_limit_s):
            return False
        used_s = time.monotonic() - self.slices_began
        self.slice += self.params.deterministic or used_s >= math.ldexp(self.first_slice_s, self.slice)
        self.limit = self.lasting
        return True

    def note_limit(self, limit: PlanLimit) -> None:
        """Note what cut the round short; the strongest reason stays, of time and work those of the last slice."""
        self.limit = max(self.limit, limit, key=LIMITS.index)
        if limit not in OF_SLICE:
            self.lasting = max(self.lasting, limit, key=LIMITS.index)

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

    def note_error(self, error: PlaceoptError) -> bool:
        """Note the limit where the error that ended a part of the round is `OutOfTime`; return whether it is."""
        is_late = isinstance(error, OutOfTime)
        if not self.stopped() and is_late:
            self.note_limit("work" if self.params.deterministic else "time")
        return is_late

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

    def step_options(self) -> SolveOptions:
        """Return the options of a solve on one thread that keeps what it has where time or work ends it."""
        return self._options(STEP_WORK * self.work_s, self.step_s)

    def whole_options(self) -> SolveOptions:
        """Return the options of a solve on one thread that loses all by an end: half of the time that is left."""
        return self._options(WHOLE_WORK, self.left_s / 2)

    def _options(self, work: float, seconds: float) -> SolveOptions:
        deterministic = self.params.deterministic
        return SolveOptions(
            time_limit_s=self.left_s if deterministic else min(seconds, self.left_s),
            seed=self.params.seed,
            deterministic=deterministic,
            work_limit=work if deterministic else None,
            memory_limit_mib=self.params.memory_limit_mib,
        )

    def seconds_since(self, moment: float) -> float | None:
        """Return the seconds that a plan states; None in deterministic mode."""
        return None if self.params.deterministic else time.monotonic() - moment
