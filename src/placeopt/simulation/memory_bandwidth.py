"""Memory bandwidth of nodes: how much the jobs slow each other that share it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from placeopt.model.base import Milliseconds
from placeopt.scheduling.host_rules import Throttle
from placeopt.scheduling.occupancy import Follower, Occupancy
from placeopt.simulation.held_resources import HeldResources

LEAST_PERCENT = 10
"""A throttled job keeps this part of what it would use; Intel's Memory Bandwidth Allocation sets no less."""


class MemoryBandwidthUse(Follower[HeldResources]):
    """
    Memory bandwidth in use on every node, by jobs that may be throttled and by others.

    Where a node's jobs would use more than ``usable`` (MB/s by node; it limits no job where it is unknown), each
    takes longer in proportion: 1.2 times the bandwidth takes 1.2 times as long. With ``throttle`` jobs that may be
    throttled are held back first (SODA V-E): they get no more than the others leave, but at least ``LEAST_PERCENT``,
    and take longer in proportion. Noticed by ``utilisation``, that happens only where a job with GPUs would lose that
    much of its pace.
    """

    def __init__(
        self, usable: Mapping[str, int], occupancy: Occupancy[HeldResources], *, throttle: Throttle | None
    ) -> None:
        self._usable, self._occupancy, self._throttle = usable, occupancy, throttle
        self._stretch = dict.fromkeys(usable, (0, 0))
        """Excess in thousandths of jobs that may not be throttled, and of those that may."""
        self._changed = dict.fromkeys(usable, False)

    def started(self, held: HeldResources) -> None:
        """Stretch the jobs on the nodes of a job that starts."""
        self._follow(held)

    def ended(self, held: HeldResources, now_ms: Milliseconds) -> None:
        """Stretch the jobs on the nodes of a job that ends."""
        del now_ms
        self._follow(held)

    def jobs_with_new_pace(self, held: HeldResources) -> dict[str, None]:
        """Return the jobs on those nodes of a job whose latest change made jobs faster or slower."""
        changed = (node for node in held.mbps if self._changed.get(node))
        return {user.job: None for node in changed for user in self._users(node)}

    def excess(self, held: HeldResources) -> int:
        """Return the excess run time in thousandths of a job: that on the slowest of its nodes."""
        return max((self._stretch[node][held.throttled] for node in held.mbps if node in self._stretch), default=0)

    def _users(self, node: str) -> Iterator[HeldResources]:
        """Yield the jobs that use bandwidth of a node, in the order in which they started there."""
        return (held for held in self._occupancy.on_node[node].values() if node in held.mbps)

    def _follow(self, held: HeldResources) -> None:
        for node in held.mbps.keys() & self._usable.keys():
            before = self._stretch[node]
            self._stretch[node] = self._excesses(node)
            self._changed[node] = self._stretch[node] != before

    def _excesses(self, node: str) -> tuple[int, int]:
        usable, users = self._usable[node], list(self._users(node))
        firm, soft = (sum(held.mbps[node] for held in users if held.throttled == soft) for soft in (False, True))
        if firm + soft <= usable:
            return 0, 0
        granted = self._granted(usable, firm, soft, serves_gpus=any(held.gpus for held in users))
        used = max(usable, firm + granted)
        soft_excess = -(-1000 * soft * used // (granted * usable)) - 1000 if soft else 0
        return -(-1000 * (used - usable) // usable), soft_excess

    def _granted(self, usable: int, firm: int, soft: int, *, serves_gpus: bool) -> int:
        """Return what jobs that may be throttled use together of the bandwidth ``soft`` that they would use."""
        throttle = self._throttle
        if throttle is None or not soft:
            return soft
        if throttle.noticed_by == "utilisation":
            keeps_pace = 100 * usable > (100 - throttle.drop_percent) * (firm + soft)  # if none were held back
            if not serves_gpus or keeps_pace:
                return soft
        return min(soft, max(usable - firm, -(-soft * LEAST_PERCENT // 100)))
