"""One call at a time: a public method is refused while another one of the same object is at work."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, Protocol, TypeVar

from placeopt.errors import EngineInUse

P = ParamSpec("P")
R = TypeVar("R")


class Exclusive(Protocol):
    """An object that takes one call at a time."""

    _calls: dict[str, list[str]]
    """Under ``"now"`` the name of the call at work, in a list; empty between calls."""


S = TypeVar("S", bound=Exclusive)


def exclusive(method: Callable[Concatenate[S, P], R]) -> Callable[Concatenate[S, P], R]:
    """
    Wrap a public method so that it raises ``EngineInUse`` while another one of the same object is at work.

    The second call is refused and does not wait: a caller that waits in silence loses its time limit, and a call from
    ``on_progress``, in the thread of the first one, would wait forever.

    Notes
    -----
    Uses the entry of a dictionary instead of a lock: ``setdefault`` is atomic, and what a KeyboardInterrupt cuts short
    anywhere inside ``try`` is undone in ``finally``, where a lock taken just before ``try`` would stay taken.
    """

    @wraps(method)
    def call(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
        mine = [method.__name__]
        try:
            holder = self._calls.setdefault("now", mine)
            if holder is not mine:
                raise EngineInUse(method.__name__, holder[0])
            return method(self, *args, **kwargs)
        finally:
            if self._calls.get("now") is mine:
                del self._calls["now"]

    return call
