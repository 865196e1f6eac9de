"""Which kinds of jobs that found no room are worth asking for again, now that something has ended."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass

from placeopt.model import Cluster, Job, Option, Placement, Policy


@dataclass(frozen=True)
class Need:
    """The least that an option needs: so many workers, each of so many GPUs and so much else on one node."""

    workers: int
    gpus: int
    gpu_milli: int
    """Thousandths of each of its GPUs."""
    cpu_millicores: int
    memory_mib: int


class RetryFilter:
    """
    Kinds of jobs that found no room, until a node of one that has ended could take a worker of theirs.

    Compares amounts left on GPUs and nodes only, so it may let a kind be asked for in vain, but keeps none back that
    has room. That needs rules by which a job's room depends on nothing but what is free: where jobs wait for a better
    place, queues have limits, or jobs run with fewer workers (not ``by_amounts``), every end lets all be asked for
    again.
    """

    def __init__(self, cluster: Cluster, policy: Policy, *, by_amounts: bool = True) -> None:
        machines = {machine.id: machine for machine in cluster.machines}
        self._free: dict[str, list[int]] = {}  # millicores, MiB
        self._left: dict[str, list[int]] = {}  # thousandths of each GPU
        for node in cluster.nodes:
            machine = machines[node.machine]
            self._free[node.id] = [machine.cpu_millicores, machine.memory_mib]
            self._left[node.id] = [1000] * len(machine.gpus)
        self._shares_gpus, self._whole_gpus = policy.share_mode == "overcommit", policy.share_mode == "exclusive"
        self._by_amounts = by_amounts and policy.postpone.rule == "none" and not policy.queues
        self.closed: set[Hashable] = set()
        """Kinds that are not worth asking for."""
        self._lasts = policy.postpone.rule == "none"
        self._freed: list[str] = []
        """Nodes, each time that a placement gave something up there."""
        self._failed_at: dict[Hashable, int] = {}
        """Kinds that found no room in what was free, and how long ``_freed`` was: room elsewhere has only shrunk."""
        self._needs: dict[Hashable, tuple[Need, ...]] = {}

    def learn(self, kind: Hashable, job: Job) -> None:
        """Note what jobs of a kind ask for."""
        if kind not in self._needs:
            self._needs[kind] = tuple(self._need(option) for option in job.options)

    def _need(self, option: Option) -> Need:
        demand = option.demand
        return Need(
            workers=option.workers if option.workers_min is None else option.workers_min,
            gpus=0 if self._shares_gpus else demand.gpus,
            gpu_milli=demand.gpu_milli,
            cpu_millicores=demand.cpu_millicores,
            memory_mib=demand.memory_mib,
        )

    def take(self, placement: Placement, sign: int = 1) -> None:
        """Note that a placement is held from now on, or (``sign`` -1) no more."""
        for one in placement.assignments:
            free = self._free[one.node]
            if not self._shares_gpus:
                left = self._left[one.node]
                for index, milli in one.gpus.items():
                    left[int(index)] -= sign * (1000 if self._whole_gpus else milli)
            free[0] -= sign * one.cpu_millicores
            free[1] -= sign * one.memory_mib
        if sign < 0:
            self._freed.extend([one.node for one in placement.assignments])

    def has_no_room(self, kind: Hashable) -> bool:
        """Tell whether a kind found no room in what is free, and has none on nodes of which some was given up since."""
        since = self._failed_at.get(kind)
        if since is None or since == len(self._freed):
            return since is not None
        if not self._by_amounts or self._may_fit(kind, tuple(dict.fromkeys(self._freed[since:]))):
            return False
        self._failed_at[kind] = len(self._freed)  # what was given up was taken by others
        return True

    def failed(self, kind: Hashable) -> None:
        """Note that a kind found no room in what is free, whoever might give."""
        if self._lasts:
            self._failed_at[kind] = len(self._freed)

    def ended(self, placement: Placement) -> None:
        """Let kinds be asked for again that may have room where a placement has gone (after ``take``)."""
        if self.closed:
            self._open(tuple(one.node for one in placement.assignments))

    def open_where(self, wanted: Callable[[Hashable], bool]) -> None:
        """Let some kinds be asked for again."""
        self.closed = {kind for kind in self.closed if not wanted(kind)}

    def open_all(self) -> None:
        """Let all kinds be asked for again."""
        self.closed.clear()

    def _open(self, nodes: tuple[str, ...]) -> None:
        self.closed = self._still(self.closed, nodes)

    def _still(self, kinds: set[Hashable], nodes: tuple[str, ...]) -> set[Hashable]:
        """Return those of ``kinds`` that have no room either now that ``nodes`` have more left."""
        if not self._by_amounts:
            return set()
        return {kind for kind in kinds if not self._may_fit(kind, nodes)}

    def _may_fit(self, kind: Hashable, nodes: tuple[str, ...]) -> bool:
        """Tell whether a kind that had no room may have some now that ``nodes`` have more left."""
        return any(self._opens(need, nodes) for need in self._needs[kind])

    def _opens(self, need: Need, nodes: tuple[str, ...]) -> bool:
        """Tell whether an option that had no room may have some now that ``nodes`` have more left."""
        if not any(self._workers_on(node, need, 1) for node in nodes):
            return False
        if need.workers == 1:
            return True
        found = 0
        for node in self._free:
            found += self._workers_on(node, need, need.workers)
            if found >= need.workers:
                return True
        return False

    def _workers_on(self, node: str, need: Need, most: int) -> int:
        cpu, memory = self._free[node]
        if need.gpus:
            most = min(most, sum([left >= need.gpu_milli for left in self._left[node]]) // need.gpus)
        if need.cpu_millicores:
            most = min(most, cpu // need.cpu_millicores)
        if need.memory_mib:
            most = min(most, memory // need.memory_mib)
        return max(0, most)
