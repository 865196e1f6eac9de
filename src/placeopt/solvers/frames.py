"""
Messages between a worker process and its parent: a length, then a pickle.

Both ends are this library, started by each other and joined by pipes that no other process holds, so unpickling
trusts no new party. `Request`, `Stop` go down; `Ready`, `Answer` come up.
"""

import pickle
import struct
from dataclasses import dataclass
from typing import BinaryIO

from placeopt.linear import LinearModel
from placeopt.solvers.result import Progress, Solution, SolveOptions

_LENGTH = struct.Struct("<Q")


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
    body = pickle.dumps(frame, protocol=5)
    stream.write(_LENGTH.pack(len(body)))
    stream.write(body)
    stream.flush()


def read_frame(stream: BinaryIO) -> Frame | None:
    """Read one message; ``None`` at the end of the stream, also in the middle of a message."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    (length,) = _LENGTH.unpack(head)
    body = stream.read(length)
    if len(body) < length:
        return None
    frame: Frame = pickle.loads(body)  # noqa: S301 - from our own child or parent, see above
    return frame
