"""CPU jobs with half of their cores where memory bandwidth runs short (SODA V-E), and others on what they leave."""

from __future__ import annotations

from placeopt.model import Assignment, Demand
from placeopt.model.base import Milliseconds
from placeopt.scheduling.host_rules import Throttle
from placeopt.scheduling.occupancy import Follower, Held, Occupancy
from placeopt.scheduling.policy import Scheduling
from placeopt.scheduling.setting import Setting


class CoreThrottle(Follower[Held]):
    """
    The CPU jobs that are held back by their cores, by the memory bandwidth that jobs state.

    Where jobs with all their cores would use more than is usable, or by ``utilisation`` where a job with GPUs would
    lose that much of its pace, all CPU jobs there that use any get half of theirs; they get them back once that is over
    and the cores are free.
    """

    def __init__(self, rule: Throttle, usable_mbps: dict[str, int], occupancy: Occupancy[Held]) -> None:
        self._rule, self._usable, self._occupancy = rule, usable_mbps, occupancy
        self._held_back: dict[str, None] = {}
        self._changed: dict[str, None] = {}
        """Nodes where a job has started or ended since they were looked at."""

    @property
    def holds_any(self) -> bool:
        """Whether a job is held back."""
        return bool(self._held_back)

    def started(self, held: Held) -> None:
        demand, there = _asked(held), self._at_usable(held)
        self._changed |= dict.fromkeys(at.node for at in there)
        if _is_soft(held) and any(at.cpu_millicores < demand.cpu_millicores * len(at.workers) for at in there):
            self._held_back[held.job.id] = None

    def ended(self, held: Held, now_ms: Milliseconds) -> None:
        del now_ms
        self._changed |= dict.fromkeys(at.node for at in self._at_usable(held))
        self._held_back.pop(held.job.id, None)

    def changes(self) -> dict[str, int]:
        """Return which jobs get other numbers of cores now -> thousandths of cores of each worker."""
        on_node = self._occupancy.on_node
        changed = {job: None for node in self._changed for job, held in on_node[node].items() if _is_soft(held)}
        self._changed.clear()
        cores: dict[str, int] = {}
        for job in changed | self._held_back:  # for those held back there may be room by now
            held = self._occupancy.running[job]
            short = any(self._runs_short(at.node) for at in self._at_usable(held))
            if short != (job in self._held_back):
                all_cores = _asked(held).cpu_millicores
                cores[job] = -(-all_cores // 2) if short else all_cores
        return cores

    def _at_usable(self, held: Held) -> list[Assignment]:
        """Return the part of a placement on nodes of which the usable bandwidth is known."""
        return [at for at in held.placement.assignments if at.node in self._usable]

    def _runs_short(self, node: str) -> bool:
        usable, there = self._usable[node], self._occupancy.on_node[node].values()
        used = sum(
            _asked(held).memory_bandwidth_mbps * len(at.workers)
            for held in there
            for at in held.placement.assignments
            if at.node == node
        )
        if used <= usable:
            return False
        if self._rule.noticed_by == "bandwidth":
            return True
        return any(_asked(held).gpus for held in there) and 100 * usable <= (100 - self._rule.drop_percent) * used


def _asked(held: Held) -> Demand:
    """Return what a worker asked for, with all of its cores."""
    return held.job.option(held.placement.option).demand


def _is_soft(held: Held) -> bool:
    """Return whether a job can be held back: it is a CPU job that uses memory bandwidth."""
    return held.job.kind == "cpu" and _asked(held).memory_bandwidth_mbps > 0


def core_throttle(setting: Setting, scheduling: Scheduling, occupancy: Occupancy[Held]) -> CoreThrottle | None:
    """Return what holds CPU jobs back by their cores; None: nothing does."""
    rule, percent = scheduling.bandwidth, setting.memory_bandwidth_percent
    if not isinstance(rule, Throttle) or rule.by != "cores" or percent is None:
        return None
    known = {node.id: setting.hardware.machine_of(node).memory_bandwidth_mbps for node in setting.hardware.nodes}
    usable = {name: max(1, mbps * percent // 100) for name, mbps in known.items() if mbps is not None}
    return CoreThrottle(rule, usable, occupancy)
