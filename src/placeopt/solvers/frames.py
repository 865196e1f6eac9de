"""
Messages between a worker process and its parent, one pickle each; and how a request is answered.

Both ends are this library, started by each other and joined by pipes that no other process holds, so unpickling
trusts no new party. `Request`, `Stop` go down; `Ready`, `Answer` come up.
"""

from __future__ import annotations

import contextlib
import pickle
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, BinaryIO

from placeopt.solvers.registry import load
from placeopt.solvers.result import Progress, Solution, SolveOptions

if TYPE_CHECKING:
    from placeopt.linear import LinearModel


@dataclass(frozen=True, eq=False)
class Request:
    """Solve this; ``stop_at`` is a time of the monotonic clock, which all processes of a machine share."""

    number: int
    solver: str
    model: LinearModel
    options: SolveOptions
    stop_at: float


@dataclass(frozen=True)
class Stop:
    """End request ``number`` gently, with what it has."""

    number: int


@dataclass(frozen=True)
class Ready:
    """The worker has started."""


@dataclass(frozen=True, eq=False)
class Answer:
    """News of request ``number``: any number of `Progress`, then one `Solution`."""

    number: int
    content: Progress | Solution


Frame = Request | Stop | Ready | Answer


def write_frame(stream: BinaryIO, frame: Frame) -> None:
    """Write one message and flush."""
    pickle.dump(frame, stream, pickle.HIGHEST_PROTOCOL)
    stream.flush()


def read_frames(stream: BinaryIO) -> Iterator[Frame]:
    """Yield messages until the stream ends, be it in the middle of one."""
    with contextlib.suppress(Exception):  # a broken stream is an ended one
        while True:
            yield pickle.load(stream)  # noqa: S301 - from our own child or parent, see above


def solve_request(
    request: Request,
    report: Callable[[Progress], None],
    stop: threading.Event,
    limits: contextlib.AbstractContextManager[None] | None = None,
) -> Solution:
    """Solve under ``limits``; whatever the solver raises, the other side has to hear of it as a failed solution."""
    began, options = time.monotonic(), request.options
    try:
        with limits or contextlib.nullcontext():
            solve = load(request.solver)
            left = min(options.time_limit_s, request.stop_at - time.monotonic())
            return solve(request.model, replace(options, time_limit_s=left), report, stop)
    except MemoryError:
        most = "" if options.memory_limit_mib is None else f", at {options.memory_limit_mib} MiB for the solve"
        seconds = time.monotonic() - began
        return Solution("error", "memory", seconds=seconds, message=f"out of memory{most}", failed=True)
    except Exception as error:  # noqa: BLE001 - see above
        message = f"{type(error).__name__}: {error}"
        return Solution("error", seconds=time.monotonic() - began, message=message, failed=True)
