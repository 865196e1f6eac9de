"""A solve that goes on while its caller works."""

import threading
from collections.abc import Callable

from placeopt.linear import LinearModel
from placeopt.solvers.result import Solution, SolveOptions
from placeopt.solvers.supervise import Runner


class Beside:
    """
    Starts a solve in a thread of its own, on a runner whose solver is in another process.

    Parameters
    ----------
    runner, solver, model, options, deadline, cancel
        As in `placeopt.solvers.pool.Worker.solve`.
    """

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
        self._solution: Solution | None = None
        self._error: Exception | None = None
        dropped = self._dropped = threading.Event()

        def ended() -> bool:
            return dropped.is_set() or (cancel is not None and cancel())

        def run() -> None:
            try:
                self._solution = runner.solve(solver, model, options, deadline=deadline, cancel=ended)
            except Exception as error:  # noqa: BLE001 - it is the caller's, and raised there
                self._error = error

        self._thread = threading.Thread(target=run, name="placeopt-beside", daemon=True)
        self._thread.start()

    def wait(self, seconds: float) -> Solution | None:
        """Return the solution, or None if it is not there within so many seconds; raises what the solve raised."""
        self._thread.join(max(seconds, 0.0))
        if self._error is not None:
            raise self._error
        return self._solution

    def drop(self) -> None:
        """End the solve, if it is not over, without waiting for that; its runner is busy for a moment more."""
        self._dropped.set()
