"""Free GPUs, CPU and memory by node, kept up to date as jobs start and end."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import compress

from placeopt.model import Cluster, Demand, Instance, Job, Option, Placement, Policy
from placeopt.problem.admission import Admission, conditions_of, effective_labels

MOST_COUNTS = 1000
"""Kinds of workers that are counted on every node; beyond that all are counted again."""


@dataclass
class WorkerCount:
    """How many workers of a kind fit, each node up to the number of a job, as far as the journal is read."""

    on_node: dict[str, int]
    journal_read: int
    all_nodes: int = 0
    full_nodes: int = 0
    """Nodes on which all workers of the job fit."""


class FreeResources:
    """
    Free GPUs, CPU and memory by node, under a share mode.

    The one account of free resources in a simulation: growth of elastic jobs, preemption and the retry filter read it.
    A check looks at GPUs (share, number of jobs, model, memory), CPU, memory, workers per node, and the nodes that a
    job admits. It leaves bandwidths, named resources, splits and queues to the referee, which may still refuse.

    `placeopt.feasibility.free_capacity.FreeCapacity` answers the same for one compiled round, as arrays over all nodes.
    A simulation changes a few nodes between two checks and tries hypothetical evictions in between, so plain numbers by
    node, changed in place, take less time than arrays that are rebuilt.
    """

    def __init__(self, cluster: Cluster, policy: Policy) -> None:
        self._gpus = {node.id: cluster.machine_of(node).gpus for node in cluster.nodes}
        self._admission = Admission(cluster.nodes, effective_labels(Instance(cluster=cluster)))
        self._cpu_millicores = {node.id: cluster.machine_of(node).cpu_millicores for node in cluster.nodes}
        self._memory_mib = {node.id: cluster.machine_of(node).memory_mib for node in cluster.nodes}
        self.gpu_milli = 1000 * sum(map(len, self._gpus.values()))
        """Sum over all GPUs; below 0 where GPUs are overcommitted."""
        self._free_milli = {name: [1000] * len(gpus) for name, gpus in self._gpus.items()}
        """By node, of each GPU; a GPU in exclusive use counts as wholly taken."""
        self._num_jobs = {name: [0] * len(gpus) for name, gpus in self._gpus.items()}
        self._gpu_memory_mib = {name: [0] * len(gpus) for name, gpus in self._gpus.items()}  # in use
        self._exclusive = policy.share_mode == "exclusive"
        self._jobs_max = 1 if self._exclusive else policy.jobs_per_gpu_max
        self._shares_bind = policy.share_mode == "fraction"
        self._overcommits = policy.share_mode == "overcommit"
        self._admitting: dict[tuple[object, ...], list[str]] = {}
        self._counts: dict[tuple[object, ...], WorkerCount] = {}
        self._journal: list[str] = []
        """Nodes whose free amounts have changed, in order."""

    def take(self, placement: Placement, demand: Demand, sign: int = 1) -> None:
        """Account for a placement that starts or, with ``sign`` -1, ends."""
        for assignment in placement.assignments:
            node = assignment.node
            self._journal.append(node)
            self._cpu_millicores[node] -= sign * assignment.cpu_millicores
            self._memory_mib[node] -= sign * assignment.memory_mib
            milli, jobs, memory = self._free_milli[node], self._num_jobs[node], self._gpu_memory_mib[node]
            for gpu, share in assignment.gpus.items():
                index = int(gpu)
                self.gpu_milli -= sign * share
                milli[index] -= sign * (1000 if self._exclusive else share)
                jobs[index] += sign
                memory[index] += sign * demand.gpu_memory_mib
        if len(self._journal) > 4 * len(self._gpus) + 1000:  # what fell behind that far is counted again
            self._journal.clear()
            self._counts.clear()

    def exchange(self, before: Placement | None, after: Placement | None, demand: Demand) -> None:
        """Account for ``after`` in place of ``before``."""
        if before is not None:
            self.take(before, demand, -1)
        if after is not None:
            self.take(after, demand)

    def fits(self, job: Job, option: Option, workers: int, *, idle: bool = False) -> bool:
        """Return whether a number of workers of an option fits; with ``idle``, overcommitted GPUs must be idle."""
        shape = (option.demand, option.single_node, option.workers_per_node_max)
        key = (shape, workers, idle, *conditions_of(job))
        count = self._counts.get(key)
        if count is None:
            if len(self._counts) >= MOST_COUNTS:
                self._counts.clear()
            count = self._counts[key] = WorkerCount(dict.fromkeys(self.admitting(job), 0), len(self._journal))
            changed: Iterable[str] = count.on_node
        else:
            changed = dict.fromkeys(self._journal[count.journal_read :])
            count.journal_read = len(self._journal)
        for node in changed:
            before = count.on_node.get(node)
            if before is not None:
                here = self.workers_on(node, option, workers, idle=idle)
                count.on_node[node] = here
                count.all_nodes += here - before
                count.full_nodes += (here == workers) - (before == workers)
        return count.full_nodes > 0 or (not option.single_node and count.all_nodes >= workers)

    def admitting(self, job: Job) -> list[str]:
        """Return the nodes that admit a job, in the order of the file."""
        key = conditions_of(job)
        known = self._admitting.get(key)
        if known is None:
            admitted = self._admission.admitted(job).tolist()
            known = self._admitting[key] = list(compress(self._gpus, admitted))
        return known

    def worker(self, option: Option, nodes: Iterable[str], placed: Placement) -> tuple[str, tuple[int, ...]] | None:
        """Return node and GPUs for one more worker of a placed job, on the first possible of ``nodes``, or None."""
        assignments = {assignment.node: assignment for assignment in placed.assignments}
        demand = option.demand
        for node in nodes:
            mine = assignments.get(node)
            most = option.workers_per_node_max
            if most is not None and mine is not None and len(mine.workers) >= most:
                continue
            if self._cpu_millicores[node] < demand.cpu_millicores or self._memory_mib[node] < demand.memory_mib:
                continue
            held = set() if mine is None else {int(gpu) for gpu in mine.gpus}
            free = [gpu for gpu in self._usable(node, demand) if gpu not in held]
            if len(free) >= demand.gpus:
                return node, tuple(free[: demand.gpus])
        return None

    def cpu_millicores(self, node: str) -> int:
        """Return the free millicores of a node."""
        return self._cpu_millicores[node]

    def idle_gpus(self, node: str) -> int:
        """Return how many GPUs of a node no job holds."""
        return sum(not jobs for jobs in self._num_jobs[node])

    def num_idle_gpus(self) -> dict[str, int]:
        """Return how many GPUs of each node no job holds."""
        return {node: self.idle_gpus(node) for node in self._num_jobs}

    def is_idle(self, node: str) -> bool:
        """Return whether no job holds a GPU of a node."""
        return not any(self._num_jobs[node])

    def workers_on(self, node: str, option: Option, most: int, *, idle: bool = False) -> int:
        """Return how many workers of an option fit on a node, at most ``most``; ``idle`` as in ``fits``."""
        demand = option.demand
        here = most if option.workers_per_node_max is None else min(most, option.workers_per_node_max)
        if demand.cpu_millicores:
            here = min(here, self._cpu_millicores[node] // demand.cpu_millicores)
        if demand.memory_mib:
            here = min(here, self._memory_mib[node] // demand.memory_mib)
        if demand.gpus and here > 0:  # last, as it takes longest
            here = min(here, len(self._usable(node, demand, idle=idle)) // demand.gpus)
        return max(0, here)

    def _usable(self, node: str, demand: Demand, *, idle: bool = False) -> list[int]:
        """Return the GPUs of a node that can take a worker's share; ``idle`` as in ``fits``."""
        jobs_max = 1 if idle and self._overcommits else self._jobs_max
        milli, jobs, memory = self._free_milli[node], self._num_jobs[node], self._gpu_memory_mib[node]
        return [
            index
            for index, gpu in enumerate(self._gpus[node])
            if (not self._shares_bind or milli[index] >= demand.gpu_milli)
            and (jobs_max is None or jobs[index] < jobs_max)
            and memory[index] + demand.gpu_memory_mib <= gpu.memory_mib
            and (not demand.gpu_models or gpu.model in demand.gpu_models)
        ]
