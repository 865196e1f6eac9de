"""
A solver process that is a copy of this one: what is loaded here need not be loaded there again.

A copy takes the locks that other threads hold along, and no thread releases them in it. So only a process of one thread
is copied, counting those of native libraries, and only on Linux, which lists them; elsewhere the caller starts a new
interpreter. Importing this module loads the standard library only.
"""

import contextlib
import fcntl
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from typing import BinaryIO

WAIT_POLL_S = 0.005
LATE = 70
"""Exit code of a copy that could not begin."""


def is_possible() -> bool:
    """Return whether this process runs no thread but the one that asks."""
    if sys.platform != "linux":
        return False
    try:
        return len(os.listdir("/proc/self/task")) == 1
    except OSError:
        return False


class ForkedProcess:
    """
    A copy of this process that serves as `placeopt.solvers.worker` does; the part of ``subprocess.Popen`` that is used.

    - ``solvers``: Imported at once, others when first asked for.
    - ``log``: Descriptor that the copy has as its standard error.

    Raises ``OSError`` if there is no room for another process. Only where `is_possible` holds.
    """

    def __init__(self, solvers: Sequence[str], log: int) -> None:
        requests, send = os.pipe()
        receive, answers = os.pipe()
        self.returncode: int | None = None
        handled = {signal.SIGINT, signal.SIGTERM}
        former = signal.pthread_sigmask(signal.SIG_BLOCK, handled)  # the handlers of this process are not the copy's
        try:
            self.pid = os.fork()
            if self.pid == 0:
                _serve(requests, answers, log, solvers)
        except OSError:
            os.close(send)
            os.close(receive)
            raise
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, former)
            os.close(requests)
            os.close(answers)
        with contextlib.suppress(OSError):
            os.setpgid(self.pid, self.pid)  # the copy does so too; whoever asks first, a kill finds the group
        self.stdin: BinaryIO = os.fdopen(send, "wb")
        self.stdout: BinaryIO = os.fdopen(receive, "rb")

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end and return the exit code, negative for a signal; raises ``subprocess.TimeoutExpired``."""
        latest = None if timeout is None else time.monotonic() + timeout
        while self.returncode is None:
            try:
                pid, status = os.waitpid(self.pid, 0 if latest is None else os.WNOHANG)
            except ChildProcessError:  # another caller has waited for it
                pid, status = self.pid, 0
            if pid == self.pid:
                self.returncode = os.waitstatus_to_exitcode(status)
            elif latest is not None and time.monotonic() >= latest:
                raise subprocess.TimeoutExpired("worker", timeout or 0.0)
            else:
                time.sleep(WAIT_POLL_S)
        return self.returncode


def _serve(requests: int, answers: int, log: int, solvers: Sequence[str]) -> None:
    """Become the worker, in the copy; never returns, and runs nothing that was meant for the end of this process."""
    try:
        os.setpgid(0, 0)
        for number in (signal.SIGTERM, signal.SIGALRM):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        sys.unraisablehook = sys.__unraisablehook__
        above = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, 3) for descriptor in (requests, answers, log)]
        for place, descriptor in enumerate(above):  # 0 to 2 may be among them, where this process was started without
            os.dup2(descriptor, place)
        os.closerange(3, os.sysconf("SC_OPEN_MAX"))
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        from placeopt.solvers.worker import serve

        serve(solvers)
    except BaseException as error:  # noqa: BLE001 - whatever it is, the copy must not go on as its parent
        os.write(2, f"{type(error).__name__}: {error}\n".encode())
    finally:
        os._exit(LATE)
