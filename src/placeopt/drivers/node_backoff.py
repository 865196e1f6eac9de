"""Nodes that refused what was started there: closed for a time that doubles with every refusal in a row."""

from __future__ import annotations

from placeopt.drivers.backoff import Backoff

FIRST_S, MOST_S = 30.0, 1800.0


class NodeBackoff:
    """Which nodes are closed, and until when; times are seconds of one clock of the caller."""

    def __init__(self, first_s: float = FIRST_S, most_s: float = MOST_S) -> None:
        self._first_s, self._most_s = first_s, most_s
        self._backoffs: dict[str, Backoff] = {}
        self._until: dict[str, float] = {}

    def refused(self, node: str, now: float) -> float:
        """Close a node; return for how many seconds."""
        backoff = self._backoffs.setdefault(node, Backoff(self._first_s, self._most_s))
        seconds = backoff.failed()
        self._until[node] = now + seconds
        return seconds

    def started(self, node: str) -> None:
        """Note that a start succeeded: the next refusal is the first of a row. A node that is closed stays so."""
        self._backoffs.pop(node, None)

    def closed(self, now: float) -> frozenset[str]:
        """Return the nodes that are closed."""
        return frozenset(node for node, until in self._until.items() if now < until)
