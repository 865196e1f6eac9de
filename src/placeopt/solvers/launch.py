"""
A solver program from elsewhere that solves for us, and never outlives us.

It stands in our process group, so whoever kills the group kills it too; the kernel kills it when the thread that
waits for it ends, however that happens; and it is killed before `run` returns. (A package's own way of calling its
program leaves it running after any signal to its parent.) Files are passed as open descriptors of unnamed files, so
there is nothing to tidy up either.
"""

import contextlib
import errno
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from typing import IO, NamedTuple

from placeopt.solvers.result import Limit

POLL_S = 0.02
GRACE_S = 0.2
"""Between asking a program to stop, and killing it; within what a worker gets after a cancellation."""

# Between fork and exec of a process with threads nothing may be run safely, so a second interpreter of 10 ms does
# it: arguments are the process that must be its parent, the limit on its address space (0: none) and the command.
_BIND = """
import os, signal, sys
parent, limit = int(sys.argv[1]), int(sys.argv[2])
if sys.platform == "linux":
    import ctypes
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG; it survives the exec
if os.getppid() != parent:
    sys.exit(1)
if limit:
    import resource
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    resource.setrlimit(resource.RLIMIT_AS, (limit if hard < 0 else min(limit, hard), hard))
os.execv(sys.argv[3], sys.argv[3:])
"""


class Ended(NamedTuple):
    """How a program ended: its exit code, negative for a signal; and why it was asked to, ``none`` if it was not."""

    code: int
    limit: Limit


def run(
    command: Sequence[str],
    on_output: Callable[[bytes], None],
    *,
    seconds: float,
    stop: threading.Event | None,
    terminal: bool = False,
    pass_fds: Sequence[int] = (),
    errors: IO[bytes] | None = None,
    memory_bytes: int = 0,
) -> Ended:
    """
    Run a program to its end.

    - ``command``: Absolute path and arguments.
    - ``on_output``: Called in this thread with what it writes to its standard output, in pieces.
    - ``seconds``: After these it is asked to stop by SIGINT, and killed `GRACE_S` later.
    - ``stop``: When set, the same happens at once.
    - ``terminal``: Let its standard output be a terminal, if there are any: most programs then write every line at
      once, and not thousands of bytes at a time, which are lost when they are killed.
    - ``pass_fds``: Descriptors that it gets, under the same numbers.
    - ``errors``: Where its standard error goes; ``None``: to standard output.
    - ``memory_bytes``: Limit on its address space; 0 for none but ours.

    Raises ``OSError`` if no process can be started.
    """
    end, asked = time.monotonic() + seconds, False
    limit: Limit = "none"
    bound = [sys.executable, "-I", "-S", "-c", _BIND, str(os.getpid()), str(memory_bytes), *command]
    reading, writing = _channel(terminal=terminal)
    with os.fdopen(reading, "rb", buffering=0):
        try:
            process = subprocess.Popen(  # noqa: S603 - no shell; what is run is the caller's choice
                bound,
                stdin=subprocess.DEVNULL,
                stdout=writing,
                stderr=subprocess.STDOUT if errors is None else errors,
                pass_fds=pass_fds,
            )
        finally:
            os.close(writing)
        try:
            while True:
                if select.select([reading], [], [], POLL_S)[0]:
                    piece = _read(reading)
                    if not piece:
                        break
                    on_output(piece)
                now = time.monotonic()
                if asked and now >= end:
                    return Ended(_killed(process), limit)
                if not asked and (now >= end or (stop is not None and stop.is_set())):
                    limit = "time" if now >= end else "user"
                    asked, end = True, now + GRACE_S
                    process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):  # it has said all it had to say
                process.wait(GRACE_S)
        finally:
            _killed(process)
    return Ended(process.returncode, limit)


def _channel(*, terminal: bool) -> tuple[int, int]:
    """Two ends, to read from and to write to."""
    if terminal:
        with contextlib.suppress(OSError):  # none left, or none in this container
            return os.openpty()
    return os.pipe()


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 1 << 16)
    except OSError as error:
        if error.errno == errno.EIO:  # a terminal reports its last writer gone
            return b""
        raise


def _killed(process: "subprocess.Popen[bytes]") -> int:
    process.kill()  # nothing happens to one that has ended
    return process.wait()
