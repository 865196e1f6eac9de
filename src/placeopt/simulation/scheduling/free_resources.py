"""What is free on every node, in plain numbers: whether a job would have room, were others gone."""

from __future__ import annotations

from collections.abc import Iterable

from placeopt.model import Assignment, Cluster, Demand, Instance, Job, Option, Placement, Policy, WorkerGpus
from placeopt.problem.classes import admits, effective_labels


class FreeResources:
    """
    Free GPUs, CPU and memory by node, under a share mode.

    Looks at GPUs (share, number of jobs, model, memory), CPU, memory, one node or many, workers a node, and where the
    job may run. Bandwidths, layered splits and queues are left to the referee: what fits here may still be refused.
    """

    def __init__(self, cluster: Cluster, policy: Policy) -> None:
        machines = {machine.id: machine for machine in cluster.machines}
        self._node = {node.id: node for node in cluster.nodes}
        self._gpus = {node.id: machines[node.machine].gpus for node in cluster.nodes}
        self._labels = dict(zip(self._node, effective_labels(Instance(cluster=cluster)), strict=True))
        self._cpu = {node.id: machines[node.machine].cpu_millicores for node in cluster.nodes}
        self._memory = {node.id: machines[node.machine].memory_mib for node in cluster.nodes}
        self._milli = {name: [0] * len(gpus) for name, gpus in self._gpus.items()}
        self._jobs = {name: [0] * len(gpus) for name, gpus in self._gpus.items()}
        self._used = {name: [0] * len(gpus) for name, gpus in self._gpus.items()}  # GPU memory, MiB
        self._jobs_max = 1 if policy.share_mode == "exclusive" else policy.jobs_per_gpu_max
        self._milli_max = 1000 if policy.share_mode == "fraction" else None
        self._allowed: dict[tuple[object, ...], list[str]] = {}

    def take(self, placement: Placement, demand: Demand, sign: int = 1) -> None:
        """Note that ``placement`` is held from now on, or (``sign`` -1) no more."""
        for one in placement.assignments:
            self._cpu[one.node] -= sign * one.cpu_millicores
            self._memory[one.node] -= sign * one.memory_mib
            milli, jobs, used = self._milli[one.node], self._jobs[one.node], self._used[one.node]
            for gpu, share in one.gpus.items():
                milli[int(gpu)] += sign * share
                jobs[int(gpu)] += sign
                used[int(gpu)] += sign * demand.gpu_memory_mib

    def fits(self, job: Job, option: Option, workers: int) -> bool:
        """Tell whether so many workers of an option would have room."""
        found = 0
        for node in self.allowed(job):
            here = self._workers_on(node, option, workers)
            found = here if option.single_node else found + here
            if found >= workers:
                return True
        return False

    def allowed(self, job: Job) -> list[str]:
        """Return the nodes where a job may start, in the order of the file."""
        key = (job.nodes_allowed, tuple(job.node_selector.items()), job.tolerations)
        known = self._allowed.get(key)
        if known is None:
            known = [name for name, node in self._node.items() if admits(node, self._labels[name], job)]
            self._allowed[key] = known
        return known

    def worker(self, option: Option, nodes: Iterable[str], beside: Placement) -> tuple[str, tuple[int, ...]] | None:
        """Return node and GPUs for one more worker of a job, on the first of ``nodes`` with room; None if none has."""
        there = {one.node: one for one in beside.assignments}
        for node in nodes:
            mine = there.get(node)
            most = option.workers_per_node_max
            if most is not None and mine is not None and len(mine.workers) >= most:
                continue
            if not self._amounts(node, option.demand):
                continue
            held = set() if mine is None else {int(gpu) for gpu in mine.gpus}
            free = [gpu for gpu in self._usable(node, option.demand) if gpu not in held]
            if len(free) >= option.demand.gpus:
                return node, tuple(free[: option.demand.gpus])
        return None

    def free_gpus(self, node: str) -> int:
        """Return how many GPUs of a node nobody holds a part of."""
        return sum(not jobs for jobs in self._jobs[node])

    def _workers_on(self, node: str, option: Option, most: int) -> int:
        demand = option.demand
        here = most if option.workers_per_node_max is None else min(most, option.workers_per_node_max)
        if demand.cpu_millicores:
            here = min(here, self._cpu[node] // demand.cpu_millicores)
        if demand.memory_mib:
            here = min(here, self._memory[node] // demand.memory_mib)
        if demand.gpus and here > 0:  # asked last: it takes longest
            here = min(here, len(self._usable(node, demand)) // demand.gpus)
        return max(0, here)

    def _amounts(self, node: str, demand: Demand) -> bool:
        return self._cpu[node] >= demand.cpu_millicores and self._memory[node] >= demand.memory_mib

    def _usable(self, node: str, demand: Demand) -> list[int]:
        """Return the GPUs of a node that could take a worker's share."""
        milli, jobs, used = self._milli[node], self._jobs[node], self._used[node]
        return [
            index
            for index, gpu in enumerate(self._gpus[node])
            if (self._milli_max is None or milli[index] + demand.gpu_milli <= self._milli_max)
            and (self._jobs_max is None or jobs[index] < self._jobs_max)
            and used[index] + demand.gpu_memory_mib <= gpu.memory_mib
            and (not demand.gpu_models or gpu.model in demand.gpu_models)
        ]


def workers_of(placement: Placement) -> int:
    """Return the number of workers that are placed."""
    return sum(len(one.workers) for one in placement.assignments)


def without_last(placement: Placement, demand: Demand) -> Placement:
    """Return a placement without the worker of the highest rank; the others stay as they are."""
    last = max(worker.rank for one in placement.assignments for worker in one.workers)
    assignments = []
    for one in placement.assignments:
        kept = tuple(worker for worker in one.workers if worker.rank != last)
        if kept:
            shares = {str(gpu): one.gpus[str(gpu)] for worker in kept for gpu in worker.gpus}
            assignments.append(_assignment(one.node, kept, shares, demand))
    return placement.model_copy(update={"assignments": tuple(assignments)})


def with_one_more(placement: Placement, demand: Demand, node: str, gpus: tuple[int, ...]) -> Placement:
    """Return a placement with one more worker, of the next rank, at its request."""
    rank = sum(len(one.workers) for one in placement.assignments)
    new = WorkerGpus(rank=rank, gpus=gpus)
    shares = {str(gpu): demand.gpu_milli for gpu in gpus}
    assignments, found = [], False
    for one in placement.assignments:
        if one.node == node:
            found = True
            assignments.append(_assignment(node, (*one.workers, new), {**one.gpus, **shares}, demand))
        else:
            assignments.append(one)
    if not found:
        assignments.append(_assignment(node, (new,), shares, demand))
    return placement.model_copy(update={"assignments": tuple(assignments)})


def _assignment(node: str, workers: tuple[WorkerGpus, ...], shares: dict[str, int], demand: Demand) -> Assignment:
    return Assignment(
        node=node,
        gpus=shares,
        cpu_millicores=len(workers) * demand.cpu_millicores,
        memory_mib=len(workers) * demand.memory_mib,
        workers=workers,
    )
