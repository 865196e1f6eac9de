"""Memory bandwidth of nodes: what their jobs use, and how much those that share it slow each other."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from placeopt.scheduling.host_rules import Throttle

LEAST_PERCENT = 10
"""A throttled job keeps this part of what it would use; Intel's Memory Bandwidth Allocation sets no less."""


class MemoryBandwidthUse:
    """
    Memory bandwidth in use on every node, by jobs that may be throttled and by others.

    Where a node's jobs would use more than ``usable`` (MB/s of every node; None: unknown, which limits no job), each
    takes longer in proportion: 1.2 times the bandwidth takes 1.2 times as long. With ``throttle`` jobs that may be
    throttled are held back first (SODA V-E): they get no more than the others leave, but at least ``LEAST_PERCENT``,
    and take longer in proportion. Noticed by ``utilisation``, that happens only where a job with GPUs would lose that
    much of its pace.
    """

    def __init__(self, usable: Sequence[int | None], *, throttle: Throttle | None) -> None:
        self._usable = usable
        self._throttle = throttle
        self._mbps: list[dict[str, int]] = [{} for _ in usable]
        self._sums = [[0, 0] for _ in usable]  # of jobs that may not be throttled, and of those that may
        self._gpu_jobs = [0] * len(usable)
        self._stretch = [(0, 0)] * len(usable)  # excess in thousandths of the two
        self._changed = [False] * len(usable)

    def start(self, job: str, mbps: Mapping[int, int], *, throttled: bool, has_gpus: bool = False) -> None:
        """Let a job use bandwidth on each of its nodes."""
        for node, amount in mbps.items():
            self._mbps[node][job] = amount
            self._gpu_jobs[node] += has_gpus
            self._change(node, amount, throttled)

    def end(self, job: str, mbps: Mapping[int, int], *, throttled: bool, has_gpus: bool = False) -> None:
        """Free the bandwidth of a job."""
        for node, amount in mbps.items():
            del self._mbps[node][job]
            self._gpu_jobs[node] -= has_gpus
            self._change(node, -amount, throttled)

    def jobs_with_new_pace(self, nodes: Iterable[int]) -> dict[str, None]:
        """Return the jobs on those of the nodes whose latest change made jobs faster or slower."""
        return {job: None for node in sorted(nodes) if self._changed[node] for job in self._mbps[node]}

    def excess(self, nodes: Iterable[int], *, throttled: bool) -> int:
        """Return the excess run time in thousandths of a job on these nodes: that of the slowest."""
        return max((self._stretch[node][throttled] for node in nodes), default=0)

    def _change(self, node: int, amount: int, throttled: bool) -> None:
        self._sums[node][throttled] += amount
        before = self._stretch[node]
        self._stretch[node] = self._excesses(node)
        self._changed[node] = self._stretch[node] != before

    def _excesses(self, node: int) -> tuple[int, int]:
        usable = self._usable[node]
        firm, soft = self._sums[node]
        if usable is None or firm + soft <= usable:
            return 0, 0
        granted = self._granted(node, usable)
        used = max(usable, firm + granted)
        soft_excess = -(-1000 * soft * used // (granted * usable)) - 1000 if soft else 0
        return -(-1000 * (used - usable) // usable), soft_excess

    def _granted(self, node: int, usable: int) -> int:
        """Return what jobs that may be throttled use together of the bandwidth that they would use."""
        firm, soft = self._sums[node]
        throttle = self._throttle
        if throttle is None or not soft:
            return soft
        if throttle.noticed_by == "utilisation":
            keeps_pace = 100 * usable > (100 - throttle.drop_percent) * (firm + soft)  # if none were held back
            if not self._gpu_jobs[node] or keeps_pace:
                return soft
        return min(soft, max(usable - firm, -(-soft * LEAST_PERCENT // 100)))
