"""Growing, bounded pauses for what fails repeatedly: nodes that refuse jobs, jobs that do not start, a controller."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)
DOUBLINGS_MAX = 16


def pause_s(failures: int, first_s: float, longest_s: float) -> float:
    """Return ``first_s`` after the first failure, twice as long after each further one, at most ``longest_s``."""
    return min(longest_s, first_s * 2.0 ** min(max(0, failures - 1), DOUBLINGS_MAX))


class Backoff(Generic[K]):
    """Who is left alone until when; a success clears it."""

    def __init__(self, first_s: float, longest_s: float) -> None:
        self._first_s, self._longest_s = first_s, longest_s
        self._failed: dict[K, tuple[int, float]] = {}

    def fail(self, key: K, now_s: float) -> float:
        """Count a failure and return until when to leave the key alone; failures during a pause count once."""
        failures, until = self._failed.get(key, (0, 0.0))
        if now_s < until:
            return until
        until = now_s + pause_s(failures + 1, self._first_s, self._longest_s)
        self._failed[key] = failures + 1, until
        return until

    def succeed(self, key: K) -> None:
        """Forget the failures of a key."""
        self._failed.pop(key, None)

    def paused(self, now_s: float) -> frozenset[K]:
        """Return the keys that are left alone now."""
        return frozenset(key for key, (_, until) in self._failed.items() if now_s < until)
