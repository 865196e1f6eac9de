"""Processes of a real host that tests start and end."""

from __future__ import annotations

import signal
import subprocess

ENDS_S = 10


def end_daemon(daemon: subprocess.Popen[bytes], number: int = signal.SIGTERM) -> None:
    """End a daemon, even if it stands still; one that does not end by the signal is killed."""
    daemon.send_signal(signal.SIGCONT)
    daemon.send_signal(number)
    try:
        daemon.wait(ENDS_S)
    except subprocess.TimeoutExpired:
        daemon.kill()
        daemon.wait()
