"""A live driver as its own process (``placeopt kubernetes run`` or ``slurm run``), and what its lines of JSON say."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

STOPS_S = 30.0
Event = tuple[float, Callable[[], None]]
"""Seconds after the beginning, and what happens then."""


def happen_in_time(events: Iterable[Event], do: Callable[[Callable[[], None]], None] = lambda happen: happen()) -> None:
    """Let each event happen at its time, by ``do``."""
    began = time.monotonic()
    for at_s, happen in sorted(events, key=lambda event: event[0]):
        time.sleep(max(0.0, began + at_s - time.monotonic()))
        do(happen)


TERMINATED = 128 + signal.SIGTERM


class DriverProcess:
    """
    A running driver.

    Attributes
    ----------
    rounds
        What it said of each round.
    faults
        What it wrote to standard error that no driver should, and a wrong end.
    """

    def __init__(self, *words: str, env: Mapping[str, str] | None = None) -> None:
        self.rounds: list[dict[str, Any]] = []
        self.faults: list[str] = []
        command = [sys.executable, "-m", "placeopt.cli", *words, "--json"]
        self._child = subprocess.Popen(
            command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        self._readers = [threading.Thread(target=one, daemon=True) for one in (self._listen, self._complain)]
        for reader in self._readers:
            reader.start()

    def stop(self) -> None:
        """End it as a user does, and see that it ends well."""
        self._end(signal.SIGTERM, TERMINATED)

    def kill(self) -> None:
        """Kill it."""
        self._end(signal.SIGKILL, -signal.SIGKILL)

    def _end(self, number: signal.Signals, expected: int) -> None:
        self._child.send_signal(number)
        try:
            code = self._child.wait(STOPS_S)
        except subprocess.TimeoutExpired:
            self._child.kill()
            code = self._child.wait()
        if code != expected:
            self.faults.append(f"the driver ended with {code}, not {expected}")
        for reader in self._readers:
            reader.join(STOPS_S)

    def _listen(self) -> None:
        for line in self._child.stdout or ():
            self.rounds.append(json.loads(line))

    def _complain(self) -> None:
        """Take what ends a command, or would: lines of a host that does not answer name errors of libraries, too."""
        lines = (line.rstrip() for line in self._child.stderr or ())
        self.faults.extend(line for line in lines if line.startswith(("Traceback", "error:")))


def fired(rounds: list[dict[str, Any]]) -> Counter[str]:
    """Return how often each mechanism of a policy acted."""
    total = Counter[str]()
    for one in rounds:
        total.update(one.get("fired", {}))
    return total
