"""Which kinds of jobs that found no room are worth asking for again, now that something has ended."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass

from placeopt.model import Cluster, Job, Option, Placement, Policy


@dataclass(frozen=True)
class Need:
    """The least that an option needs: so many workers, each of so much on one node."""

    workers: int
    gpu_milli: int
    cpu_millicores: int
    memory_mib: int


class Openings:
    """
    Kinds of jobs that found no room, until a node of one that has ended could take a worker of theirs.

    Compares amounts left on nodes only, so it may let a kind be asked for in vain, but keeps none back that has room.
    That needs rules by which a job's room depends on nothing but what is free: where jobs wait for a better place,
    queues have limits, or jobs run with fewer workers (not ``by_amounts``), every end lets all be asked for again.
    """

    def __init__(self, cluster: Cluster, policy: Policy, *, by_amounts: bool = True) -> None:
        machines = {machine.id: machine for machine in cluster.machines}
        self._free = {
            node.id: [1000 * len(machine.gpus), machine.cpu_millicores, machine.memory_mib]
            for node in cluster.nodes
            for machine in (machines[node.machine],)
        }
        self._shares_gpus = policy.share_mode == "overcommit"
        self._by_amounts = by_amounts and policy.postpone.rule == "none" and not policy.queues
        self.closed: set[Hashable] = set()
        """Kinds that are not worth asking for."""
        self._lasts = policy.postpone.rule == "none"
        self._roomless: set[Hashable] = set()
        self._needs: dict[Hashable, tuple[Need, ...]] = {}

    def learn(self, kind: Hashable, job: Job) -> None:
        """Note what jobs of a kind ask for."""
        if kind not in self._needs:
            self._needs[kind] = tuple(self._need(option) for option in job.options)

    def _need(self, option: Option) -> Need:
        demand = option.demand
        return Need(
            workers=option.workers if option.workers_min is None else option.workers_min,
            gpu_milli=0 if self._shares_gpus else demand.gpus * demand.gpu_milli,
            cpu_millicores=demand.cpu_millicores,
            memory_mib=demand.memory_mib,
        )

    def take(self, placement: Placement, sign: int = 1) -> None:
        """Note that a placement is held from now on, or (``sign`` -1) no more."""
        for one in placement.assignments:
            free = self._free[one.node]
            if not self._shares_gpus:
                free[0] -= sign * sum(one.gpus.values())
            free[1] -= sign * one.cpu_millicores
            free[2] -= sign * one.memory_mib
        if sign < 0 and self._roomless:
            self._roomless = self._still(self._roomless, tuple(one.node for one in placement.assignments))

    def has_no_room(self, kind: Hashable) -> bool:
        """Tell whether a kind found no room in what is free, of which nobody has given up any since."""
        return kind in self._roomless

    def failed(self, kind: Hashable) -> None:
        """Note that a kind found no room in what is free, whoever might give."""
        if self._lasts:
            self._roomless.add(kind)

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
        return {kind for kind in kinds if not any(self._opens(need, nodes) for need in self._needs[kind])}

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
        milli, cpu, memory = self._free[node]
        if need.gpu_milli:
            most = min(most, milli // need.gpu_milli)
        if need.cpu_millicores:
            most = min(most, cpu // need.cpu_millicores)
        if need.memory_mib:
            most = min(most, memory // need.memory_mib)
        return max(0, most)
