"""``placeopt serve --stdio --state DIR`` as a child: lines to it, answers from it, and SIGKILL."""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

SERVE = (sys.executable, "-m", "placeopt.cli", "serve", "--stdio", "--state")
LONGEST_S = 900.0
"""An answer that takes longer is a fault; long, since the machine may stand still meanwhile."""
Reply = dict[str, Any]


class ServiceChild:
    """One life of the service on a folder; one request at a time."""

    def __init__(self, folder: Path, command: tuple[str, ...] = SERVE) -> None:
        self._child = subprocess.Popen([*command, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._number, self._over = 0, False
        self._read = b""
        self.content = b""
        """The last answer as it was read, without its number."""

    def send(self, call: str, body: object = None, **how: object) -> None:
        """Send a request; ``how``: ``key``, ``path``, ``query``."""
        self._number += 1
        line = {"id": self._number, "call": call, **how} | ({} if body is None else {"body": body})
        stdin = self._child.stdin
        assert stdin is not None
        stdin.write(json.dumps(line).encode() + b"\n")
        stdin.flush()

    def wait(self, seconds: float) -> bool:
        """Wait until something can be read, at most so long; tell whether it can."""
        return b"\n" in self._read or bool(select.select([self._child.stdout], [], [], seconds)[0])

    def answer(self) -> Reply:
        """Return the answer of the last request: ``{"id", "reply" or "error"}``."""
        end = time.monotonic() + LONGEST_S
        while b"\n" not in self._read:
            assert self.wait(max(0.0, end - time.monotonic())), "the service does not answer"
            more = os.read(self._stdout, 2**16)
            assert more, f"the service ended by itself, code {self._child.wait()}"
            self._read += more
        return self._line()

    def ask(self, call: str, body: object = None, **how: object) -> Reply:
        """Return the answer of a request."""
        self.send(call, body, **how)
        return self.answer()

    def kill(self) -> Reply | None:
        """Kill it; return the answer that it had written and nobody had read, None without one."""
        if self._over:
            return None
        self._over = True
        self._child.send_signal(signal.SIGKILL)
        self._child.wait()
        while more := os.read(self._stdout, 2**16):
            self._read += more
        for pipe in (self._child.stdin, self._child.stdout):
            assert pipe is not None
            pipe.close()
        return self._line() if b"\n" in self._read else None

    @property
    def _stdout(self) -> int:
        assert self._child.stdout is not None
        return self._child.stdout.fileno()

    def _line(self) -> Reply:
        line, _, self._read = self._read.partition(b"\n")
        found: Reply = json.loads(line)
        self.content = line.partition(b",")[2][:-1]
        assert found["id"] == self._number, f"answer {found['id']} to request {self._number}"
        return found
