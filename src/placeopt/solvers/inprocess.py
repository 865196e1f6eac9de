"""
A solver in a thread of this process, for those who cannot start processes.

Nothing here can be killed: a solver that does not stop when asked is left behind at the deadline, and the next solve
waits for it first. Memory limits do not apply, and a crash of the solver is a crash of the program.
"""

import itertools
import queue
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from types import TracebackType
from typing import Self

from placeopt.linear import LinearModel
from placeopt.solvers.frames import Answer
from placeopt.solvers.reading import OnProgress
from placeopt.solvers.registry import load
from placeopt.solvers.result import Progress, Solution, SolveOptions
from placeopt.solvers.supervise import Lost, Supervision, check_request

CLOSE_S = 1.0


class InProcess:
    """Solves in a thread; same use as `placeopt.solvers.pool.Worker`."""

    def __init__(self) -> None:
        self._numbers = itertools.count(1)
        self._turn = threading.Lock()
        self._run: _Run | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def start(self) -> None:
        """Nothing to start."""

    def solve(
        self,
        solver: str,
        model: LinearModel,
        options: SolveOptions,
        *,
        deadline: float,
        on_progress: OnProgress | None = None,
        cancel: Callable[[], bool] | None = None,
    ) -> Solution:
        """Solve a model, and return by the deadline; see `placeopt.solvers.pool.Worker.solve`."""
        check_request(solver, model, options)
        number = next(self._numbers)
        supervision = Supervision(number, model, options, deadline=deadline, on_progress=on_progress, cancel=cancel)
        if not self._turn.acquire(timeout=supervision.seconds_left()):
            return supervision.cut("time", "another solve was running until the deadline")
        try:
            if self._run is not None and not self._run.ended_by(deadline):
                return supervision.cut("time", "an earlier solve did not stop until the deadline")
            self._run = _Run(number, solver, model, options, supervision.stop_at)
            solution, answered = supervision.run(self._run)
            if answered:
                self._run.ended_by(deadline)
            return solution
        finally:
            if self._run is not None:
                self._run.stop(number)
            self._turn.release()

    def close(self) -> None:
        """Ask a solve that was left behind to stop, and wait a second for it."""
        if self._run is not None:
            self._run.stop(0)
            self._run.ended_by(time.monotonic() + CLOSE_S)


class _Run:
    """A solve in a daemon thread."""

    def __init__(self, number: int, solver: str, model: LinearModel, options: SolveOptions, stop_at: float) -> None:
        self.inbox: queue.SimpleQueue[Answer | Lost] = queue.SimpleQueue()
        self._stop = threading.Event()
        self._thread = threading.Thread(
            target=self._work, args=(number, solver, model, options, stop_at), name="placeopt-solve", daemon=True
        )
        self._thread.start()

    def stop(self, number: int) -> None:
        """Ask it to stop; there is only the one."""
        del number
        self._stop.set()

    def ended_by(self, deadline: float) -> bool:
        """Wait for the end, at most until ``deadline``; whether it came."""
        self._thread.join(max(deadline - time.monotonic(), 0))
        return not self._thread.is_alive()

    def _work(self, number: int, solver: str, model: LinearModel, options: SolveOptions, stop_at: float) -> None:
        def report(progress: Progress) -> None:
            self.inbox.put(Answer(number, progress))

        began = time.monotonic()
        try:
            left = min(options.time_limit_s, stop_at - began)
            solution = load(solver)(model, replace(options, time_limit_s=left), report, self._stop)
        except MemoryError:
            seconds = time.monotonic() - began
            solution = Solution("error", "memory", seconds=seconds, message="out of memory", failed=True)
        except Exception as error:  # noqa: BLE001 - whatever it is, the caller has to hear of it
            message = f"{type(error).__name__}: {error}"
            solution = Solution("error", seconds=time.monotonic() - began, message=message, failed=True)
        self.inbox.put(Answer(number, solution))
