"""
The parent's side of a solve: wait, collect, and stop it in time.

A `Supervision` keeps a `Reading` of what is reported, so nothing is lost when the other side falls silent. It asks
gently first, ahead of the deadline, and gives up at the deadline.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from placeopt.solvers.frames import Answer
from placeopt.solvers.result import Limit, Progress, Solution, SolveOptions
from placeopt.solvers.stopper import POLL_S

if TYPE_CHECKING:
    from placeopt.linear import LinearModel
    from placeopt.solvers.reading import OnProgress

ANSWER_S = 1 / 4
"""How long a solve may take to answer when it is asked to end; HiGHS and CP-SAT mostly answer within 0.05 s."""


@dataclass(frozen=True)
class Lost:
    """The other side is gone and will not answer."""

    message: str
    limit: Limit = "none"


class Link(Protocol):
    """A way to a running solve."""

    @property
    def inbox(self) -> queue.SimpleQueue[Answer | Lost]:
        """What comes back."""
        ...

    def stop(self, number: int) -> None:
        """Ask request ``number`` to end gently; must not block."""
        ...


class Supervision:
    """
    One supervised solve.

    - ``model``, ``options``: What was asked; a feasible hint counts as the first solution.
    - ``deadline``: Time of the monotonic clock at which `run` returns, whatever happens.
    - ``on_progress``: Called with every better solution and bound, in the thread of `run`.
    - ``cancel``: Asked some forty times a second; when true, the solve is ended.
    """

    def __init__(
        self,
        number: int,
        model: LinearModel,
        options: SolveOptions,
        *,
        deadline: float,
        on_progress: OnProgress | None,
        cancel: Callable[[], bool] | None,
    ) -> None:
        from placeopt.solvers.reading import Reading  # only here: it loads NumPy, see `placeopt.solvers.pool`

        now = time.monotonic()
        early = min(2 * ANSWER_S, max(POLL_S, (deadline - now) / 16))
        late = max(1.0, options.time_limit_s / 10)  # a solver that is this late on its own limit is ended for it
        self.stop_at = deadline - early
        self._ask_at = min(deadline - early / 2, now + options.time_limit_s + late / 2)
        self._end_at = min(deadline, now + options.time_limit_s + late)
        self._number, self._on_progress, self._cancel = number, on_progress, cancel
        self._reason: Limit = "none"
        self._reading = Reading(model, options, on_progress)

    def run(self, link: Link) -> tuple[Solution, bool]:
        """
        Wait for the end of the solve.

        Returns the solution, and whether the other side answered: if not it may still be at work, and has to go.
        """
        while True:
            try:
                outcome = self._step(link)
            except KeyboardInterrupt:
                if self._reason == "user":  # the second one: at once
                    return self.cut("user", "interrupted"), False
                self._ask(link, "user")
                continue
            if outcome is not None:
                return outcome

    def seconds_left(self) -> float:
        """Until the deadline, as a timeout that the standard library takes."""
        return min(max(self._end_at - time.monotonic(), 0.0), threading.TIMEOUT_MAX)

    def cut(self, limit: Limit, message: str, *, failed: bool = False) -> Solution:
        """The solution so far, of a solve that did not answer; ``failed`` if neither clock nor caller ended it."""
        return self._reading.cut(limit, message, failed=failed)

    def _step(self, link: Link) -> tuple[Solution, bool] | None:
        now = time.monotonic()
        if self._reason == "none":
            if self._cancel is not None and self._cancel():
                self._ask(link, "user")
            elif now >= self._ask_at:
                self._ask(link, "time")
        if now >= self._end_at:
            reason: Limit = "time" if self._reason == "none" else self._reason
            return self.cut(reason, "did not answer in time and was ended"), False
        until = self._end_at if self._reason != "none" else min(self._ask_at, self._end_at)
        if self._cancel is not None:
            until = min(until, now + POLL_S)
        try:
            news = link.inbox.get(timeout=min(max(until - now, 0.0), threading.TIMEOUT_MAX))
        except queue.Empty:
            return None
        if isinstance(news, Lost):
            return self.cut(news.limit, news.message, failed=True), False
        if news.number != self._number:
            return None
        if isinstance(news.content, Progress):
            self._take(news.content)
            return None
        return self._merged(news.content), True

    def _ask(self, link: Link, reason: Limit) -> None:
        self._reason = reason
        if reason == "user":
            self._end_at = min(self._end_at, time.monotonic() + ANSWER_S)
        link.stop(self._number)

    def _take(self, progress: Progress) -> None:
        if progress.values is not None:
            self._reading.offer(progress.values)
        if progress.bound is not None:
            self._reading.offer_exact_bound(progress.bound)
        if progress.relaxed_values is not None and self._on_progress is not None:
            self._on_progress(progress)

    def _merged(self, solution: Solution) -> Solution:
        """The answer, with our reason for its end, and with what was reported if it comes without a solution."""
        if solution.limit == "user" and self._reason == "none":  # a signal to the solver is none to us
            cause = "; ".join(part for part in ("the solver was stopped from outside", solution.message) if part)
            solution = replace(solution, limit="none", message=cause, failed=True)
        elif solution.limit == "user":
            solution = replace(solution, limit=self._reason)
        elif solution.limit == "none" and self._reason == "user":
            solution = replace(solution, limit="user")  # it was done all the same, but nothing may come after it
        if solution.values is None and self._reading.values is not None:
            self._reading.withdraw_bound(solution.bound)
            return self._reading.cut(solution.limit, solution.message, failed=solution.failed)
        return solution
