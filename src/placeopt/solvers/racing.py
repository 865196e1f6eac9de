"""
Two solvers on one model, side by side: one may be good at finding and the other at bounding.

Each has a runner and a share of the threads of its own. What either proves counts for both: the race ends as soon as
the best solution meets the best bound, whichever solver they are from; a solver that is told to stop is not waited for.
"""

import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from placeopt.linear import IntArray, LinearModel
from placeopt.solvers.certify import trivial_bound
from placeopt.solvers.reading import OnProgress
from placeopt.solvers.result import Limit, Progress, Solution, SolveOptions, Status
from placeopt.solvers.supervise import CANCEL_POLL_S, Runner, check_request

RACE = "race"
"""What methods call a race of `RACERS`, where they name a solver."""
RACERS = ("highs", "cpsat")
"""HiGHS bounds well, CP-SAT finds well; the first runs alone where there is no race."""

LEAST_THREADS = {"highs": 1, "cpsat": 2}

LIMITS: tuple[Limit, ...] = ("none", "size", "memory", "work", "time", "user")
"""Who ends last says what ended the race: a contestant out of memory leaves the other to the clock."""


@dataclass(frozen=True)
class Contestant:
    """A solver, the runner that it has for itself, and its threads."""

    solver: str
    runner: Runner
    threads: int


def share_out(runners: Sequence[Runner], threads: int) -> list[Contestant]:
    """
    Give each of `RACERS` a runner and its share of the threads; the first has one more where they do not divide.

    CP-SAT gets two at least, though they may share a core: with one it does without the searches that improve what is
    found.
    """
    share, more = divmod(threads, len(RACERS))
    return [
        Contestant(solver, runner, max(LEAST_THREADS[solver], share + (number < more)))
        for number, (solver, runner) in enumerate(zip(RACERS, runners, strict=True))
    ]


def stand_in(solver: str) -> str:
    """Name the solver to try next where one has failed; by itself, since a race fails only if all of it does."""
    return RACERS[1] if solver == RACERS[0] else RACERS[0]


def race(
    contestants: Sequence[Contestant],
    model: LinearModel,
    options: SolveOptions,
    *,
    deadline: float,
    on_progress: OnProgress | None = None,
    cancel: Callable[[], bool] | None = None,
) -> Solution:
    """
    Let all contestants solve a model at once, and return by the deadline.

    - ``contestants``: At least one. Their runners are busy for a moment after the race, until they have stopped.
    - ``model``, ``options``: What and how; ``threads`` is what each contestant says.
    - ``deadline``, ``on_progress``, ``cancel``: As in `Runner.solve`. News are those of the race:
      the best solution, the best bound.

    Returns the best verified values and the tightest bound, whichever solver they are from. ``failed`` only if all
    failed; the cause of one that did stands in the message, whatever the other reached. Raises ``Unsupported`` if one
    of the solvers does not exist or cannot do this.
    """
    for contestant in contestants:
        check_request(contestant.solver, model, options)
    standing = _Standing(model, options, on_progress)
    over = threading.Event()
    news: queue.SimpleQueue[tuple[int, Progress | Solution]] = queue.SimpleQueue()
    for number, contestant in enumerate(contestants):
        threading.Thread(
            target=_run,
            args=(number, contestant, model, options, deadline, news, over),
            name=f"placeopt-race-{contestant.solver}",
            daemon=True,
        ).start()
    ended: dict[int, Solution] = {}
    limit: Limit = "none"
    try:
        while len(ended) < len(contestants) and not standing.decided and limit == "none":
            if cancel is not None and cancel():
                limit = "user"
            elif time.monotonic() >= deadline:
                limit = "time"
            else:
                _hear(news, min(CANCEL_POLL_S, max(0.0, deadline - time.monotonic())), standing, ended)
    except KeyboardInterrupt:
        limit = "user"
    finally:
        over.set()
    return standing.conclude({contestants[number].solver: solution for number, solution in ended.items()}, limit)


def _run(
    number: int,
    contestant: Contestant,
    model: LinearModel,
    options: SolveOptions,
    deadline: float,
    news: "queue.SimpleQueue[tuple[int, Progress | Solution]]",
    over: threading.Event,
) -> None:
    """One contestant, in a thread of its own."""
    began = time.monotonic()
    try:
        solution = contestant.runner.solve(
            contestant.solver,
            model,
            replace(options, threads=contestant.threads),
            deadline=deadline,
            on_progress=lambda progress: news.put((number, progress)),
            cancel=over.is_set,
        )
    except Exception as error:  # noqa: BLE001 - whatever it is, the race goes on without
        message = f"{type(error).__name__}: {error}"
        solution = Solution("error", seconds=time.monotonic() - began, message=message, failed=True)
    news.put((number, solution))


def _hear(
    news: "queue.SimpleQueue[tuple[int, Progress | Solution]]",
    seconds: float,
    standing: "_Standing",
    ended: dict[int, Solution],
) -> None:
    """Wait for one piece of news, and take it in."""
    try:
        number, content = news.get(timeout=seconds)
    except queue.Empty:
        return
    standing.take(content)
    if isinstance(content, Solution):
        ended[number] = content


class _Standing:
    """The best of what all contestants have verified."""

    def __init__(self, model: LinearModel, options: SolveOptions, on_progress: OnProgress | None) -> None:
        self._began = time.monotonic()
        self._sign = 1 if model.sense == "max" else -1
        self._gap = options.gap
        self._on_progress = on_progress
        self._trivial = trivial_bound(model)
        self._values: IntArray | None = None
        self._objective: int | None = None
        self._bound = self._trivial
        self._infeasible = self._contradicted = False
        hint = options.hint
        if hint is not None and len(hint) == model.num_variables and model.is_feasible(hint):
            self._values, self._objective = hint, model.objective_value(hint)

    @property
    def decided(self) -> bool:
        """Whether best solution and best bound are as near as was asked for, or there is no solution."""
        if self._objective is None:
            return self._infeasible
        return abs(self._bound - self._objective) <= self._gap * max(1, abs(self._objective))

    def take(self, news: Progress | Solution) -> None:
        """Take in what is better than what was there, and report it."""
        values, objective, better = news.values, news.objective, False
        if values is not None and objective is not None and (self._objective is None or self._beats(objective)):
            self._values, self._objective, better = values, objective, True
        else:
            values = None
        if news.bound is not None and not self._contradicted and self._sign * (self._bound - news.bound) > 0:
            self._bound, better = news.bound, True
        if isinstance(news, Solution) and news.status == "infeasible":
            self._infeasible = True
        if self._objective is not None and self._sign * (self._objective - self._bound) > 0:
            self._bound, self._contradicted = self._trivial, True  # one of the bounds was wrong; which one is unknown
        if better and self._on_progress is not None:
            self._on_progress(Progress(self._objective, self._bound, time.monotonic() - self._began, values))

    def conclude(self, ended: dict[str, Solution], limit: Limit) -> Solution:
        """The outcome; ``limit`` is what ended the race from outside, if anything did."""
        causes = [f"{name}: {s.message}" for name, s in ended.items() if s.failed]
        if self._contradicted:
            causes.append("the bound of one solver is contradicted by a verified solution of the other")
        elif self._infeasible and self._values is not None:
            causes.append("one solver claims infeasible, against a verified solution")
        if self._objective is not None and self._objective == self._bound:
            return self._solution("optimal", "none", causes)
        if self._values is None and self._infeasible:
            return replace(self._solution("infeasible", "none", causes), bound=None)
        if self.decided:
            return self._solution("feasible", "none", [*causes, "stopped at the gap asked for"])
        failed = limit == "none" and all(solution.failed for solution in ended.values())
        sound = [solution.limit for solution in ended.values() if solution.failed == failed]
        status: Status = "feasible" if self._values is not None else "error" if failed else "no_solution"
        ended_by: Limit = max(sound, key=LIMITS.index) if limit == "none" and sound else limit
        return replace(self._solution(status, ended_by, causes), failed=failed)

    def _beats(self, objective: int) -> bool:
        return self._objective is not None and self._sign * (objective - self._objective) > 0

    def _solution(self, status: Status, limit: Limit, causes: list[str]) -> Solution:
        seconds = time.monotonic() - self._began
        return Solution(status, limit, self._values, self._objective, self._bound, seconds, "; ".join(causes))


class Beside:
    """Starts a solve in a thread of its own, on a runner whose solver is in another process; see `Runner.solve`."""

    def __init__(
        self,
        runner: Runner,
        solver: str,
        model: LinearModel,
        options: SolveOptions,
        *,
        deadline: float,
        cancel: Callable[[], bool] | None = None,
    ) -> None:
        self.latest: Progress | Solution | None = None
        """The latest news, be it the end of the solve; one that was dropped ends with the news before."""
        self._is_over = False
        self._error: Exception | None = None
        self._changed = threading.Condition()
        dropped = self._dropped = threading.Event()

        def ended() -> bool:
            return dropped.is_set() or (cancel is not None and cancel())

        def run() -> None:
            error: Exception | None = None
            solution: Solution | None = None
            try:
                solution = runner.solve(solver, model, options, deadline=deadline, on_progress=self._note, cancel=ended)
            except Exception as raised:  # noqa: BLE001 - it is the caller's, and raised there
                error = raised
            with self._changed:
                if self.latest is None or not dropped.is_set():
                    self.latest = solution
                self._error, self._is_over = error, True
                self._changed.notify_all()

        self._thread = threading.Thread(target=run, name="placeopt-beside", daemon=True)
        self._thread.start()

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

    def _note(self, news: Progress) -> None:
        with self._changed:
            self.latest = news
            self._changed.notify_all()

    def drop(self) -> None:
        """End the solve, if it is not over, without waiting for that; its runner is busy for a moment more."""
        self._dropped.set()
