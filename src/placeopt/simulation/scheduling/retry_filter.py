"""Which kinds of jobs that did not fit are worth another try after a placement has ended."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass

from placeopt.model import Job, Option, Placement, Policy
from placeopt.simulation.scheduling.free_resources import FreeResources


@dataclass(frozen=True)
class MinimalDemand:
    """The least that an option needs: so many workers, each with so many GPUs and other resources of one node."""

    workers: int
    gpus: int
    gpu_milli: int
    """Of each GPU."""
    cpu_millicores: int
    memory_mib: int


class RetryFilter:
    """
    Kinds of jobs that did not fit, until a node of an ended placement can take one of their workers.

    Compares free amounts of GPUs and nodes only, so a retry may fail, but no kind that fits is held back. That holds
    where only free amounts decide: where jobs wait for a better place, queues have limits, or jobs run with fewer
    workers (``by_amounts`` is false), every end reopens all kinds.

    Parameters
    ----------
    resources
        What is free; the caller keeps it up to date.
    policy
        Of the rounds.
    by_amounts
        Whether jobs start with all their workers and stay undisturbed.
    """

    def __init__(self, resources: FreeResources, policy: Policy, *, by_amounts: bool = True) -> None:
        self._resources = resources
        self._overcommitted = policy.share_mode == "overcommit"
        self._by_amounts = by_amounts and policy.postpone.rule == "none" and not policy.queues
        self.closed: set[Hashable] = set()
        """Kinds that are not worth a try."""
        self._failures_last = policy.postpone.rule == "none"
        self._freed: list[str] = []
        """Nodes, once for each time that a placement freed something there."""
        self._failed_at: dict[Hashable, int] = {}
        """Kinds that did not fit, and the length of ``_freed`` then: elsewhere free amounts have only shrunk."""
        self._demands: dict[Hashable, tuple[MinimalDemand, ...]] = {}

    def learn(self, kind: Hashable, job: Job) -> None:
        """Note what jobs of a kind ask for."""
        if kind not in self._demands:
            self._demands[kind] = tuple(self._minimal_demand(option) for option in job.options)

    def _minimal_demand(self, option: Option) -> MinimalDemand:
        demand = option.demand
        return MinimalDemand(
            workers=option.workers if option.workers_min is None else option.workers_min,
            gpus=0 if self._overcommitted else demand.gpus,
            gpu_milli=demand.gpu_milli,
            cpu_millicores=demand.cpu_millicores,
            memory_mib=demand.memory_mib,
        )

    def freed(self, placement: Placement) -> None:
        """Note that a placement has left its nodes, for good or within a round."""
        self._freed.extend([one.node for one in placement.assignments])

    def cannot_fit(self, kind: Hashable) -> bool:
        """Return whether a kind did not fit, nor fits on the nodes where something was freed since."""
        since = self._failed_at.get(kind)
        if since is None or since == len(self._freed):
            return since is not None
        if not self._by_amounts or self._may_fit(kind, tuple(dict.fromkeys(self._freed[since:]))):
            return False
        self._failed_at[kind] = len(self._freed)  # other jobs took what was freed
        return True

    def failed(self, kind: Hashable) -> None:
        """Note that a kind did not fit into what is free, evictions aside."""
        if self._failures_last:
            self._failed_at[kind] = len(self._freed)

    def ended(self, placement: Placement) -> None:
        """Reopen the kinds that may fit on the nodes of a placement that has ended."""
        if self.closed:
            self._open(tuple(one.node for one in placement.assignments))

    def open_where(self, wanted: Callable[[Hashable], bool]) -> None:
        """Reopen some kinds."""
        self.closed = {kind for kind in self.closed if not wanted(kind)}

    def open_all(self) -> None:
        """Reopen all kinds."""
        self.closed.clear()

    def _open(self, nodes: tuple[str, ...]) -> None:
        self.closed = {kind for kind in self.closed if self._by_amounts and not self._may_fit(kind, nodes)}

    def _may_fit(self, kind: Hashable, nodes: tuple[str, ...]) -> bool:
        """Return whether a kind that did not fit may fit now that ``nodes`` have more free."""
        return any(self._demand_may_fit(demand, nodes) for demand in self._demands[kind])

    def _demand_may_fit(self, demand: MinimalDemand, nodes: tuple[str, ...]) -> bool:
        if not any(self._workers_on(node, demand, 1) for node in nodes):
            return False
        if demand.workers == 1:
            return True
        found = 0
        for node in self._resources.free_milli:
            found += self._workers_on(node, demand, demand.workers)
            if found >= demand.workers:
                return True
        return False

    def _workers_on(self, node: str, demand: MinimalDemand, most: int) -> int:
        free = self._resources
        if demand.gpus:
            most = min(most, sum([milli >= demand.gpu_milli for milli in free.free_milli[node]]) // demand.gpus)
        if demand.cpu_millicores:
            most = min(most, free.cpu_millicores[node] // demand.cpu_millicores)
        if demand.memory_mib:
            most = min(most, free.memory_mib[node] // demand.memory_mib)
        return max(0, most)
