"""
Where solves run: in a process of their own, which can be killed, or in a thread of this one, which cannot.

Limits inside solvers overshoot by seconds and more, and a crash in a solver takes its process along. So solves run
in a warm child process; incumbents and bounds stream back while it works, and at the deadline it is killed without
losing any. The next solve finds a new child.

In a thread, a solver that does not stop when asked is left behind at the deadline, and the next solve waits for it
first. Memory limits do not apply, and a crash of the solver is one of the program. Solvers that need a process in any
case have one here, too.

Importing this module loads the standard library only: a `Worker` may start first, and load its solver while the
process that started it loads NumPy and the rest.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import IO, TYPE_CHECKING, BinaryIO, Literal, Self, cast

from placeopt.solvers.frames import Answer, Request, Stop, read_frames, solve_request, write_frame
from placeopt.solvers.registry import check_request, require
from placeopt.solvers.result import Limit, Progress, Solution, SolveOptions
from placeopt.solvers.supervise import ANSWER_S, Lost, Supervision

if TYPE_CHECKING:
    from placeopt.linear import LinearModel
    from placeopt.solvers.reading import OnProgress

CLOSE_S = 2.0
"""Seconds that threads, and a process that was killed, get for their end."""
START_S = 10.0
"""Seconds in which a process that does not answer may be at its imports: they take one, more on a busy machine."""


class Worker:
    """
    Where solves run, one at a time; a context manager. A second thread waits for its turn, at most until its deadline.

    - ``preload``: Solvers that the process imports when it starts, not at their first solve.
    - ``isolation``: Where: in a warm ``process``, or in a ``thread``, but for solvers that are `Entry.apart`.
    """

    stays_warm = False
    """Whether a child that was killed is replaced at once, for callers that soon solve again."""
    _numbers = itertools.count(1)  # of all workers: an answer that comes late is never taken for another's

    def __init__(self, preload: Sequence[str] = (), isolation: Literal["process", "thread"] = "process") -> None:
        self.isolation = isolation
        self._turn = threading.Lock()
        self._preload = tuple(preload)
        self._child: _Child | None = None
        self._replacing = threading.Lock()
        self._thread: _Run | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        with contextlib.suppress(Exception):  # half made, or the interpreter is going down
            self.kill()

    @property
    def pid(self) -> int | None:
        """Process id of the child, also its process group; ``None`` if none lives."""
        child = self._child
        return child.pid if child is not None and child.alive else None

    def start(self) -> None:
        """Start the child, if there is to be one, without waiting. Failing is not an error here: `solve` says why."""
        if self.isolation == "process":
            with contextlib.suppress(OSError):
                self._living_child()

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
        """
        Solve a model, and return by the deadline.

        - ``options``: The solver's own time limit ends a little before the deadline, if not earlier.
        - ``deadline``: Time of ``time.monotonic()``. Shortly before it the solver is asked to stop, at it it is ended.
        - ``on_progress``: Called in this thread with every better verified solution and bound. What it raises ends the
          solve.
        - ``cancel``: Asked some forty times a second; true ends the solve with what there is, limit ``user``.

        Returns a solution also if the solver was killed, crashed, ran out of memory or could not start: then with the
        last verified solution and bound, and a message that names the cause. After Ctrl-C in a process, too, with
        limit ``user``. Raises ``Unsupported`` if the solver does not exist or cannot do this.
        """
        check_request(solver, model, options)
        number = next(self._numbers)
        supervision = Supervision(number, model, options, deadline=deadline, on_progress=on_progress, cancel=cancel)
        if not self._turn.acquire(timeout=supervision.seconds_left()):
            return supervision.cut("time", "busy with another solve until the deadline")
        try:
            request = Request(number, solver, model, options, supervision.stop_at)
            in_process = self.isolation == "process" or require(solver).apart
            return self._in_process(request, supervision) if in_process else self._in_thread(request, supervision)
        finally:
            self._turn.release()

    def kill(self) -> None:
        """Kill the child without waiting for its end."""
        if self._child is not None:
            self._child.kill()

    def close(self) -> None:
        """Kill the child and wait for its end, and a moment for a thread; a later solve begins again."""
        with self._replacing:
            child, self._child = self._child, None
        if child is not None:
            child.kill()
            child.join()
        if self._thread is not None:
            self._thread.end(CLOSE_S)

    def _in_process(self, request: Request, supervision: Supervision) -> Solution:
        child, answered = None, False
        try:
            child = self._living_child()
            child.send(request)
            solution, answered = supervision.run(child)
            return solution
        except OSError as error:
            return supervision.cut("none", f"could not start the worker process: {error}", failed=True)
        except KeyboardInterrupt:
            return supervision.cut("user", "interrupted")
        finally:
            if child is not None and not answered and not child.is_starting:
                child.kill()
                with self._replacing:
                    if self.stays_warm and self._child is child:  # this runner may have been closed since
                        self.start()

    def _in_thread(self, request: Request, supervision: Supervision) -> Solution:
        if self._thread is not None and not self._thread.end(supervision.seconds_left()):
            return supervision.cut("time", "an earlier solve did not stop until the deadline")
        self._thread = thread = _Run(request)
        try:
            solution, answered = supervision.run(thread)
            if answered:
                thread.end(supervision.seconds_left())
            return solution
        finally:
            thread.stop(request.number)

    def _living_child(self) -> _Child:
        if self._child is None or not self._child.alive:
            self._child = _Child(self._preload)
        return self._child


class _Child:
    """One process, with a thread that reads from it, and reaps it, and a thread that writes to it."""

    def __init__(self, preload: Sequence[str]) -> None:
        self.inbox: queue.SimpleQueue[Answer | Lost] = queue.SimpleQueue()
        self.alive = True
        self._ready, self._starts_until = False, time.monotonic() + START_S
        self._outbox: queue.SimpleQueue[Request | Stop | None] = queue.SimpleQueue()
        self._oom_kills = _oom_kills()
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 - closed by the reader thread
        theirs, self._lifeline = os.pipe()
        try:
            self._process = _start(preload, self._log, theirs)
        except OSError:
            os.close(self._lifeline)
            self._log.close()
            raise
        finally:
            os.close(theirs)
        self._threads = [
            threading.Thread(target=run, name=f"placeopt-worker-{name}", daemon=True)
            for name, run in (("reader", self._read), ("writer", self._write))
        ]
        for thread in self._threads:
            thread.start()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def is_starting(self) -> bool:
        """Whether it imports its solvers, or has just done so: it will answer that what was given up is stopped."""
        return self.alive and time.monotonic() < self._starts_until

    def send(self, frame: Request | Stop) -> None:
        """Queue a message; the writer thread may take its time over a large model, the caller does not."""
        self._outbox.put(frame)

    def stop(self, number: int) -> None:
        self.send(Stop(number))

    def kill(self) -> None:
        """End the process and whatever it started, without waiting."""
        self.alive = False
        self._outbox.put(None)
        if self._process.returncode is None:
            self._end_group()

    def join(self) -> None:
        for thread in self._threads:
            thread.join(CLOSE_S)

    def _read(self) -> None:
        with cast(BinaryIO, self._process.stdout) as stream:
            for frame in read_frames(stream):
                if isinstance(frame, Answer):
                    self.inbox.put(frame)
                else:
                    self._ready, self._starts_until = True, time.monotonic() + ANSWER_S
        self.alive = False
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=CLOSE_S)
        self._end_group()
        self._process.wait()
        self._outbox.put(None)
        os.close(self._lifeline)
        self.inbox.put(self._obituary())
        self._log.close()

    def _write(self) -> None:
        with contextlib.suppress(OSError), cast(BinaryIO, self._process.stdin) as stream:
            while (frame := self._outbox.get()) is not None:
                write_frame(stream, frame)

    def _end_group(self) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)

    def _obituary(self) -> Lost:
        """What is known about the end of the process."""
        code = self._process.wait()
        how = f"signal {-code} ({signal.Signals(-code).name})" if code < 0 else f"exit code {code}"
        self._log.seek(max(self._log.seek(0, os.SEEK_END) - 2048, 0))
        said = self._log.read().decode(errors="replace").strip()
        limit: Limit = "none"
        starved = any(word in said for word in ("bad_alloc", "MemoryError", "annot allocate memory"))
        if starved or (code == -signal.SIGKILL and _oom_kills() > self._oom_kills):
            limit, how = "memory", f"{how}, out of memory"
        what = "the worker process ended" if self._ready else "could not start: the worker process ended"
        last = said.splitlines()[-1] if said else ""
        return Lost(f"{what} with {how}" + (f": {last}" if last else ""), limit)


def _start(preload: Sequence[str], log: IO[bytes], lifeline: int) -> subprocess.Popen[bytes]:
    """Start a new interpreter that serves."""
    return subprocess.Popen(  # noqa: S603 - our own module
        [sys.executable, "-P", "-m", "placeopt.solvers.worker", str(lifeline), *preload],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        pass_fds=[lifeline],
        start_new_session=True,
    )


def _oom_kills() -> int:
    """How often the kernel of this machine has killed for want of memory; 0 where it does not say."""
    with contextlib.suppress(OSError, ValueError), open("/proc/vmstat", encoding="ascii") as vmstat:
        for line in vmstat:
            name, value = line.split()
            if name == "oom_kill":
                return int(value)
    return 0


class _Run:
    """
    A solve in a daemon thread.

    The interpreter does not go down before it has ended: Python would unwind the thread within the solver, whose own
    threads still run, and C++ then aborts the program ("terminate called without an active exception").
    """

    def __init__(self, request: Request) -> None:
        self.inbox: queue.SimpleQueue[Answer | Lost] = queue.SimpleQueue()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, args=(request,), name="placeopt-solve", daemon=True)
        atexit.register(self.end)
        self._thread.start()

    def stop(self, number: int) -> None:
        """Ask it to stop; there is only the one."""
        del number
        self._stop.set()

    def end(self, seconds: float | None = None) -> bool:
        """Ask it to stop, and wait for it, at most so long; whether it has ended."""
        self._stop.set()
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _work(self, request: Request) -> None:
        def report(progress: Progress) -> None:
            self.inbox.put(Answer(request.number, progress))

        self.inbox.put(Answer(request.number, solve_request(request, report, self._stop)))
        atexit.unregister(self.end)
