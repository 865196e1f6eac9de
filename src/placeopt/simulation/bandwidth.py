"""Memory bandwidth of nodes: who uses how much, and who is slowed by it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

LEAST_PERCENT = 10
"""A job that is held back keeps so much of what it would use: Intel's Memory Bandwidth Allocation sets no less."""


class MemoryBandwidthUse:
    """
    Memory bandwidth in use on every node, by jobs that may be held back and by others.

    Where a node's jobs would use more than ``usable``, each takes as much longer as they exceed it: 1.2 times as much
    makes 1.2 times as long. With ``throttle`` those that may be held back first get no more than the others leave, but
    at least ``LEAST_PERCENT``, in proportion, and take as much longer as they get less (SODA V-E).
    """

    def __init__(self, usable: Sequence[int | None], *, throttle: bool) -> None:
        """``usable``: MB/s of every node by number, None where nothing is known, which limits nobody."""
        self._usable = usable
        self._throttle = throttle
        self._mbps: list[dict[str, int]] = [{} for _ in usable]
        self._sums = [[0, 0] for _ in usable]  # of those that may not be held back, and of those that may
        self._stretch = [(0, 0)] * len(usable)  # excess in thousandths of the two
        self._shifted = [False] * len(usable)

    def start(self, job: str, mbps: Mapping[int, int], *, may_be_held_back: bool) -> None:
        """Let a job use so much on each of its nodes."""
        for node, amount in mbps.items():
            self._mbps[node][job] = amount
            self._change(node, amount, may_be_held_back)

    def end(self, job: str, mbps: Mapping[int, int], *, may_be_held_back: bool) -> None:
        """Take it away again."""
        for node, amount in mbps.items():
            del self._mbps[node][job]
            self._change(node, -amount, may_be_held_back)

    def disturbed(self, nodes: Iterable[int]) -> dict[str, None]:
        """Return the jobs on those of the nodes whose latest change made somebody faster or slower."""
        return {job: None for node in sorted(nodes) if self._shifted[node] for job in self._mbps[node]}

    def excess(self, nodes: Iterable[int], *, may_be_held_back: bool) -> int:
        """Return the excess run time in thousandths of a job on these nodes: that of the worst of them."""
        return max((self._stretch[node][may_be_held_back] for node in nodes), default=0)

    def _change(self, node: int, amount: int, may_be_held_back: bool) -> None:
        self._sums[node][may_be_held_back] += amount
        before = self._stretch[node]
        self._stretch[node] = self._excesses(node)
        self._shifted[node] = self._stretch[node] != before

    def _excesses(self, node: int) -> tuple[int, int]:
        usable = self._usable[node]
        firm, soft = self._sums[node]
        if usable is None or firm + soft <= usable:
            return 0, 0
        given = soft
        if self._throttle and soft:
            given = min(soft, max(usable - firm, -(-soft * LEAST_PERCENT // 100)))
        used = max(usable, firm + given)
        all_excess = _ceil(1000 * (used - usable), usable)
        soft_excess = _ceil(1000 * soft * used, given * usable) - 1000 if soft else 0
        return all_excess, soft_excess


def _ceil(amount: int, by: int) -> int:
    return -(-amount // by)
