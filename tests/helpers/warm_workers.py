"""
Solver processes that outlive the `Worker` which started them: the next one takes them over, as calls of an `Engine` do.

To start a process for each call would be half of the time of all tests.
"""

import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from placeopt.solvers import Worker

START, CLOSE = Worker._living_child, Worker.close
IDLE: defaultdict[tuple[str, ...], list[Any]] = defaultdict(list)
"""Processes that have answered all requests, by the solvers that they loaded first."""


def take_over(worker: Worker) -> Any:
    """Return the process of a worker: its own, an idle one, or a new one; a race would kill it while it still loads."""
    idle = IDLE[worker._preload]
    while worker._child is None and idle:
        child = idle.pop()
        worker._child = child if child.alive else None
    before, child = worker._child, START(worker)
    while child is not before and child.alive and not child._ready:
        time.sleep(0.01)
    return child


def leave(worker: Worker) -> None:
    """Close a worker. The loser of a race may still be about to end; a process that does not answer is killed then."""
    if worker._turn.acquire(timeout=1):
        child = worker._child
        if child is not None and child.alive:
            worker._child = None
            IDLE[worker._preload].append(child)
        worker._turn.release()
    CLOSE(worker)


@contextmanager
def workers(start: Any, close: Any) -> Iterator[None]:
    """Replace how workers begin and end."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Worker, "_living_child", start)
        patch.setattr(Worker, "close", close)
        yield
