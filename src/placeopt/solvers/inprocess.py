"""
A solver in a thread of this process, for those who cannot start processes.

Nothing here can be killed: a solver that does not stop when asked is left behind at the deadline, and the next solve
waits for it first. Memory limits do not apply, and a crash of the solver is a crash of the program.
"""

import queue
import threading

from placeopt.solvers.frames import Answer, Request, solve_request
from placeopt.solvers.result import Progress, Solution
from placeopt.solvers.supervise import Lost, Runner, Supervision

CLOSE_S = 1.0


class InProcess(Runner):
    """Solves in a thread; same use as `placeopt.solvers.pool.Worker`."""

    def __init__(self) -> None:
        super().__init__()
        self._run: _Run | None = None

    def start(self) -> None:
        """Nothing to start."""

    def _solve(self, request: Request, supervision: Supervision) -> Solution:
        if self._run is not None and not self._run.ended_within(supervision.seconds_left()):
            return supervision.cut("time", "an earlier solve did not stop until the deadline")
        self._run = run = _Run(request)
        try:
            solution, answered = supervision.run(run)
            if answered:
                run.ended_within(supervision.seconds_left())
            return solution
        finally:
            run.stop(request.number)

    def close(self) -> None:
        """Ask a solve that was left behind to stop, and wait a second for it."""
        if self._run is not None:
            self._run.stop(0)
            self._run.ended_within(CLOSE_S)


class _Run:
    """A solve in a daemon thread."""

    def __init__(self, request: Request) -> None:
        self.inbox: queue.SimpleQueue[Answer | Lost] = queue.SimpleQueue()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, args=(request,), name="placeopt-solve", daemon=True)
        self._thread.start()

    def stop(self, number: int) -> None:
        """Ask it to stop; there is only the one."""
        del number
        self._stop.set()

    def ended_within(self, seconds: float) -> bool:
        """Wait for the end, at most so long; whether it came."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _work(self, request: Request) -> None:
        def report(progress: Progress) -> None:
            self.inbox.put(Answer(request.number, progress))

        self.inbox.put(Answer(request.number, solve_request(request, report, self._stop)))
