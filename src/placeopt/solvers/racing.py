"""
Two solvers on one model, side by side: one may be good at finding and the other at bounding.

Each has a runner and a share of the threads of its own. What either proves counts for both: the race ends as soon as
the best solution meets the best bound, whichever solver they are from; a solver that is told to stop is not waited for.
"""

import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace

from placeopt.linear import LinearModel
from placeopt.solvers.pool import Worker
from placeopt.solvers.reading import OnProgress, Reading
from placeopt.solvers.registry import check_request
from placeopt.solvers.result import Limit, Progress, Solution, SolveOptions

RACE = "race"
"""What methods call a race of `RACERS`, where they name a solver."""
RACERS = ("highs", "cpsat")
"""HiGHS bounds well, CP-SAT finds well; the first runs alone where there is no race."""

LEAST_THREADS = {"highs": 1, "cpsat": 2}
"""CP-SAT gets two, though they may share a core: with one it does without the searches that improve what is found."""

News = Progress | Solution | Exception
"""Of a solve: any number of ``Progress``, then its end."""

LIMITS: tuple[Limit, ...] = ("none", "size", "memory", "work", "time", "user")
"""Who ends last says what ended the race: a solver out of memory leaves the other to the clock."""


def stand_in(solver: str) -> str:
    """Name the solver to try next where one has failed; by itself, since a race fails only if all of it does."""
    return RACERS[1] if solver == RACERS[0] else RACERS[0]


def race(
    runners: Sequence[Worker],
    model: LinearModel,
    options: SolveOptions,
    *,
    deadline: float,
    on_progress: OnProgress | None = None,
    cancel: Callable[[], bool] | None = None,
) -> Solution:
    """
    Let all `RACERS` solve a model at once, and return by the deadline.

    - ``runners``: One for each. They are busy for a moment after the race, until the solvers have stopped.
    - ``model``, ``options``: What and how; ``threads`` are shared out, the first has one more where they do not divide.
    - ``deadline``, ``on_progress``, ``cancel``: As in `Worker.solve`. News are those of the race:
      the best solution, the best bound.

    Returns the best verified values and the tightest bound, whichever solver they are from. ``failed`` only if all
    failed; the cause of one that did stands in the message, whatever the other reached. Raises ``Unsupported`` if one
    of the solvers is not there or cannot do this.
    """
    for solver in RACERS:
        check_request(solver, model, options)
    reading = Reading(model, options, on_progress)
    news: queue.SimpleQueue[tuple[str, News]] = queue.SimpleQueue()
    begun: list[Beside] = []
    share, more = divmod(options.threads, len(RACERS))
    for number, (solver, runner) in enumerate(zip(RACERS, runners, strict=True)):
        asked = replace(options, threads=max(LEAST_THREADS[solver], share + (number < more)))
        begun.append(Beside(runner, solver, model, asked, deadline=deadline, cancel=cancel, news=news))
    ended: dict[str, Solution] = {}
    limit: Limit = "none"
    try:
        while len(ended) < len(RACERS) and not _is_decided(reading, ended):
            seconds = min(max(deadline - time.monotonic(), 0.0), threading.TIMEOUT_MAX)
            _take(reading, ended, *news.get(timeout=seconds))
    except queue.Empty:  # a solver that has to be ended at the deadline is not waited for
        limit = "time"
    except KeyboardInterrupt:
        limit = "user"
    finally:
        for beside in begun:
            beside.drop()
    return _conclusion(reading, ended, limit)


def _take(reading: Reading, ended: dict[str, Solution], solver: str, news: News) -> None:
    """Take in what one solver has found or proven, or how it ended."""
    if isinstance(news, Exception):  # whatever it is, the race goes on without
        message = f"{type(news).__name__}: {news}"
        news = Solution("error", seconds=reading.seconds, message=message, failed=True)
    if news.values is not None:
        reading.offer(news.values)
    if news.bound is not None:
        reading.offer_exact_bound(news.bound)
    if isinstance(news, Solution):
        ended[solver] = news


def _is_decided(reading: Reading, ended: dict[str, Solution]) -> bool:
    """Whether solution and bound meet, whoever they are from, or there is no solution."""
    return reading.is_at_gap or (reading.values is None and _is_infeasible(ended))


def _is_infeasible(ended: dict[str, Solution]) -> bool:
    return any(solution.status == "infeasible" for solution in ended.values())


def _conclusion(reading: Reading, ended: dict[str, Solution], limit: Limit) -> Solution:
    """The outcome; ``limit`` is what ended the race from outside, if anything did."""
    causes = [f"{name}: {solution.message}" for name, solution in ended.items() if solution.failed]
    outlived = "; ".join(causes)
    if _is_infeasible(ended):
        if reading.values is None:
            return replace(reading.conclude("infeasible", message=outlived), outlived=outlived)
        causes.append("one solver claims infeasible, against a verified solution")
    failed = False
    if reading.is_at_gap:
        limit = "none"
        causes += [] if reading.objective == reading.bound else ["stopped at the gap asked for"]
    elif limit == "none":
        failed = all(solution.failed for solution in ended.values())
        limit = max((solution.limit for solution in ended.values() if solution.failed == failed), key=LIMITS.index)
    return replace(reading.cut(limit, "; ".join(causes), failed=failed), outlived="" if failed else outlived)


class Beside:
    """
    A solve in a thread of its own, on a runner whose solver is in another process; see `Worker.solve`.

    ``news``: Where its news go, too, with the name of the solver.
    """

    def __init__(
        self,
        runner: Worker,
        solver: str,
        model: LinearModel,
        options: SolveOptions,
        *,
        deadline: float,
        cancel: Callable[[], bool] | None = None,
        news: queue.SimpleQueue[tuple[str, News]] | None = None,
    ) -> None:
        self.latest: Progress | Solution | None = None
        """The latest news, be it the end of the solve; one that was dropped ends with the news before."""
        self._is_over = False
        self._error: Exception | None = None
        self._changed = threading.Condition()
        self._news = news
        dropped = self._dropped = threading.Event()
        self._solver = solver

        def ended() -> bool:
            return dropped.is_set() or (cancel is not None and cancel())

        def run() -> None:
            try:
                solved = runner.solve(solver, model, options, deadline=deadline, on_progress=self._hear, cancel=ended)
                self._hear(solved)
            except Exception as error:  # noqa: BLE001 - it is the caller's
                self._hear(error)

        threading.Thread(target=run, name=f"placeopt-{solver}", daemon=True).start()

    def wait(self, seconds: float, enough: Callable[[Progress], bool] | None = None) -> Progress | Solution | None:
        """
        Return the solution, or news that are ``enough`` before, or None if neither is there within so many seconds.

        Raises what the solve raised.
        """

        def there() -> bool:
            return self._is_over or (isinstance(self.latest, Progress) and enough is not None and enough(self.latest))

        with self._changed:
            self._changed.wait_for(there, max(seconds, 0.0))
            if self._error is not None:
                raise self._error
            return self.latest if there() else None

    def _hear(self, news: News) -> None:
        with self._changed:
            self._is_over = not isinstance(news, Progress)
            if isinstance(news, Exception):
                self._error = news
            elif self.latest is None or not (self._is_over and self._dropped.is_set()):
                self.latest = news
            self._changed.notify_all()
        if self._news is not None:
            self._news.put((self._solver, news))

    def drop(self) -> None:
        """End the solve, if it is not over, without waiting for that; its runner is busy for a moment more."""
        self._dropped.set()
