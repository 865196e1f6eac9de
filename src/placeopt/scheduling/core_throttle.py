"""CPU jobs with half of their cores where memory bandwidth runs short (SODA V-E), and others on what they leave."""

from __future__ import annotations

from dataclasses import dataclass

from placeopt.model import Job, Placement
from placeopt.scheduling.host_rules import Throttle
from placeopt.scheduling.policy import Scheduling
from placeopt.scheduling.setting import Setting


@dataclass(frozen=True)
class _Use:
    mbps: int
    """Memory bandwidth with all of its cores, in MB/s."""
    has_gpus: bool


class CoreThrottle:
    """
    The use of memory bandwidth on every node, as jobs state it, and the CPU jobs that are held back there by cores.

    Where jobs with all their cores would use more than is usable, or by ``utilisation`` where a job with GPUs would
    lose that much of its pace, all CPU jobs there that use any get half of theirs; they get them back once that is over
    and the cores are free.
    """

    def __init__(self, rule: Throttle, usable_mbps: dict[str, int]) -> None:
        self._rule, self._usable = rule, usable_mbps
        self._uses: dict[str, dict[str, _Use]] = {node: {} for node in usable_mbps}
        self._cpu_jobs: dict[str, tuple[int, tuple[str, ...]]] = {}
        """Running CPU jobs that use bandwidth -> thousandths of cores that a worker asks for, and nodes."""
        self._held_back: dict[str, None] = {}
        self._changed: dict[str, None] = {}
        """Nodes where a job has started or ended since they were looked at."""

    @property
    def holds_any(self) -> bool:
        """Whether a job is held back."""
        return bool(self._held_back)

    def hold(self, job: Job, placement: Placement, sign: int) -> None:
        """Account for a job that starts or, with ``sign`` -1, ends."""
        demand = job.option(placement.option).demand
        if not (demand.memory_bandwidth_mbps or demand.gpus):
            return
        there = [at for at in placement.assignments if at.node in self._uses]
        for at in there:
            self._changed[at.node] = None
            if sign > 0:
                self._uses[at.node][job.id] = _Use(demand.memory_bandwidth_mbps * len(at.workers), demand.gpus > 0)
            else:
                del self._uses[at.node][job.id]
        if sign < 0:
            self._cpu_jobs.pop(job.id, None)
            self._held_back.pop(job.id, None)
        elif job.kind == "cpu" and demand.memory_bandwidth_mbps:
            self._cpu_jobs[job.id] = demand.cpu_millicores, tuple(at.node for at in there)
            if any(at.cpu_millicores < demand.cpu_millicores * len(at.workers) for at in there):
                self._held_back[job.id] = None

    def changes(self) -> dict[str, int]:
        """Return which jobs get other numbers of cores now -> thousandths of cores of each worker."""
        changed = dict.fromkeys(job for node in self._changed for job in self._uses[node] if job in self._cpu_jobs)
        self._changed.clear()
        cores: dict[str, int] = {}
        for job in changed | self._held_back:  # for those held back there may be room by now
            all_cores, nodes = self._cpu_jobs[job]
            short = any(map(self._runs_short, nodes))
            if short != (job in self._held_back):
                cores[job] = -(-all_cores // 2) if short else all_cores
        return cores

    def _runs_short(self, node: str) -> bool:
        usable, uses = self._usable[node], self._uses[node].values()
        used = sum(use.mbps for use in uses)
        if used <= usable:
            return False
        if self._rule.noticed_by == "bandwidth":
            return True
        return any(use.has_gpus for use in uses) and 100 * usable <= (100 - self._rule.drop_percent) * used


def core_throttle(setting: Setting, scheduling: Scheduling) -> CoreThrottle | None:
    """Return what holds CPU jobs back by their cores; None: nothing does."""
    rule, percent = scheduling.bandwidth, setting.memory_bandwidth_percent
    if not isinstance(rule, Throttle) or rule.by != "cores" or percent is None:
        return None
    known = {node.id: setting.hardware.machine_of(node).memory_bandwidth_mbps for node in setting.hardware.nodes}
    return CoreThrottle(rule, {name: max(1, mbps * percent // 100) for name, mbps in known.items() if mbps is not None})
