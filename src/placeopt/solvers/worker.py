"""
The child process: ``python -m placeopt.solvers.worker LIFELINE [SOLVER ...]``.

Reads requests from its standard input and answers on its standard output, in `frames`. What solvers print goes
elsewhere: the pipe is moved to another descriptor before anything else is imported. The named solvers are imported
at once, others when first asked for.

It never outlives its parent, nor does a program that it has started: it leads a process group, and ends all of it. That
happens when the pipe closes, in the middle of a solve if need be; and since a process that the parent forked may hold
the pipe open, it also looks whether it still has the same parent. Some solvers (SCIP) do not let go of Python's lock
while they work: so the kernel ends the group, too, when the other end of the pipe ``LIFELINE`` closes, to
which carries no data. (Its "signal on parent's death" is no use: it means the *thread* that started the child.)
"""

import contextlib
import fcntl
import os
import queue
import signal
import sys
import threading
import time
from collections.abc import Sequence
from typing import BinaryIO

from placeopt.errors import Unsupported
from placeopt.solvers.frames import Answer, Ready, Request, Stop, read_frames, solve_request, write_frame
from placeopt.solvers.memory import memory_limit
from placeopt.solvers.registry import load
from placeopt.solvers.result import Progress, Solution

PARENT_POLL_S = 1.0
"""How often the child looks whether its parent is still there."""


def serve(lifeline: int, solvers: Sequence[str]) -> None:
    """Import these solvers, then serve requests until the parent goes away."""
    parent = os.getppid()
    fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpgrp())
    fcntl.fcntl(lifeline, fcntl.F_SETFL, os.O_ASYNC)  # a SIGIO, which ends whoever does not handle it
    incoming, outgoing = _take_over_pipes()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a Ctrl-C is the parent's business
    worker = _Worker(incoming, outgoing)
    threading.Thread(target=worker.listen, daemon=True).start()
    threading.Thread(target=_watch_parent, args=(parent,), daemon=True).start()
    for name in solvers:
        with contextlib.suppress(ImportError, Unsupported):  # the request that needs it is where to say so
            load(name)
    worker.serve()


class _Worker:
    def __init__(self, incoming: BinaryIO, outgoing: BinaryIO) -> None:
        self._incoming, self._outgoing = incoming, outgoing
        self._requests: queue.SimpleQueue[tuple[Request, threading.Event]] = queue.SimpleQueue()
        self._stops: dict[int, threading.Event] = {}
        self._writing = threading.Lock()  # solvers report from threads of their own

    def listen(self) -> None:
        """Take messages in while the main thread imports or solves; leave when there will be no more."""
        for frame in read_frames(self._incoming):
            if isinstance(frame, Request):
                stop = self._stops[frame.number] = threading.Event()
                self._requests.put((frame, stop))
            elif isinstance(frame, Stop) and frame.number in self._stops:
                self._stops[frame.number].set()
        _end_group()

    def serve(self) -> None:
        """Answer requests, one after the other."""
        self._write(Ready())
        while True:
            request, stop = self._requests.get()
            self._write(Answer(request.number, self._solve(request, stop)))
            del self._stops[request.number]

    def _solve(self, request: Request, stop: threading.Event) -> Solution:
        if stop.is_set():  # the parent has given it up, maybe for another one
            return Solution("no_solution", "user", seconds=0.0)

        def report(progress: Progress) -> None:
            self._write(Answer(request.number, progress))

        limits = memory_limit(request.options.memory_limit_mib, request.options.threads)
        return solve_request(request, report, stop, limits)

    def _write(self, frame: Ready | Answer) -> None:
        with (
            self._writing,
            contextlib.suppress(BrokenPipeError),
        ):  # the reader is gone: `listen` is about to end this process
            write_frame(self._outgoing, frame)


def _take_over_pipes() -> tuple[BinaryIO, BinaryIO]:
    """Move the pipes off descriptors 0 and 1, and let those lead to nothing and to standard error."""
    incoming, outgoing = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return incoming, outgoing


def _watch_parent(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(PARENT_POLL_S)
    _end_group()


def _end_group() -> None:
    """End this process and the programs that it has started."""
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    serve(int(sys.argv[1]), sys.argv[2:])
