"""The arrays of SODA V-C on every node: nodes of small and of large GPU jobs, and the cores that are the CPU jobs'."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from placeopt.model import Cluster, Job, Option, Placement
from placeopt.model.base import Milliseconds
from placeopt.scheduling.division import NodeDivision
from placeopt.scheduling.free_resources import FreeResources
from placeopt.scheduling.occupancy import Held
from placeopt.systems.soda.gpu_types import GpuTypes

LARGE = 4
"""GPUs from which on a job belongs to the array of large jobs (SODA V-C)."""


def size_of(job: Job) -> str:
    """Return the array of a job by its size: ``none`` without GPUs, ``small`` or ``large``."""
    gpus = max(option.workers * option.demand.gpus for option in job.options)
    return "none" if not gpus else "small" if gpus < LARGE else "large"


class NodeArrays(NodeDivision):
    """
    Every node with GPUs belongs to the array of small or of large jobs, and some of its cores to CPU jobs.

    Each GPU type has arrays of its own. The last of its nodes are the large jobs', as many as their part of its GPUs,
    at least one where there are two and such jobs. Of each node's cores the CPU jobs' array has its part of all cores.
    A job is placed where its own array is, and elsewhere only if that is full; what CPU jobs hold there beyond their
    part of a node, and small jobs on a node of large ones, gives way to those it belongs to.

    ``gpu_milli``: the part of the array of a size and a GPU type; ``cpu_millicores``: of the CPU jobs.
    """

    def __init__(self, cluster: Cluster, gpu_milli: Mapping[tuple[str, str], int], cpu_millicores: int) -> None:
        self._types = GpuTypes(cluster)
        self._nodes: dict[tuple[str, str], tuple[str, ...]] = {}
        for model, names in self._types.nodes.items():
            share = gpu_milli.get(("large", model), 0) / self._types.milli[model]
            count = min(max(round(share * len(names)), share > 0), len(names) - (("small", model) in gpu_milli))
            self._nodes["small", model] = tuple(names[: len(names) - count])
            self._nodes["large", model] = tuple(names[len(names) - count :])
        all_millicores = cluster.amounts[1]
        self._cpu_part = {
            node.id: cluster.machine_of(node).cpu_millicores * cpu_millicores // all_millicores if all_millicores else 0
            for node in cluster.nodes
        }
        self._cpu_held = dict.fromkeys(self._cpu_part, 0)

    def started(self, held: Held) -> None:
        self._count(held, 1)

    def ended(self, held: Held, now_ms: Milliseconds) -> None:
        del now_ms
        self._count(held, -1)

    def _count(self, held: Held, sign: int) -> None:
        self._types.count(held.placement, sign)
        if size_of(held.job) == "none":
            for assignment in held.placement.assignments:
                if assignment.node in self._cpu_held:
                    self._cpu_held[assignment.node] += sign * assignment.cpu_millicores

    def beyond_cpu_part(self, node: str, less_millicores: int = 0) -> bool:
        """Return whether CPU jobs hold more than their part of a node, would they hold so much less."""
        return self._cpu_held[node] - less_millicores > self._cpu_part[node]

    def borrowing(
        self, held: Sequence[tuple[Job, Placement]], job: Job, option: Option, free: FreeResources
    ) -> list[int]:
        """
        Return which of the placements borrow what a job with GPUs may claim, by number: CPU jobs, then small ones.

        CPU jobs as far as they hold more than their part of a node; small jobs on nodes of large ones for a large job.
        Only on nodes where a worker of the job would find as many GPUs.
        """
        gpus, small = free.num_idle_gpus(), []
        if size_of(job) == "large":
            theirs = {node for model in self._types.of(job) for node in self._nodes["large", model]}
            small = [
                number
                for number, (other, placement) in enumerate(held)
                if size_of(other) == "small" and theirs & {at.node for at in placement.assignments}
            ]
            for number in small:
                for at in held[number][1].assignments:
                    if at.node in gpus:
                        gpus[at.node] += len(at.gpus)
        less = {node: 0 for node, number in gpus.items() if number >= option.demand.gpus}
        borrowers = []
        for number, (other, placement) in enumerate(held):
            there = [at for at in placement.assignments if at.node in less]
            if any(self.beyond_cpu_part(at.node, less[at.node]) for at in there) and size_of(other) == "none":
                borrowers.append(number)
                for at in there:
                    less[at.node] += at.cpu_millicores
        return borrowers + [n for n in small if any(at.node in less for at in held[n][1].assignments)]

    def fitted(self, job: Job) -> Job:
        """
        Return a CPU job that asks for more cores of a node than their array has of any, as it is given them.

        Of a distributed job, one of several workers, each gets that many at most, and there are as many workers as
        have the same number together; a job of a single node gets the most that there are (SODA V-C).
        """
        most = max(self._cpu_part.values(), default=0)
        if job.kind != "cpu" or not most:
            return job
        options = tuple(_fitted(option, most) for option in job.options)
        return job if options == job.options else job.model_copy(update={"options": options})

    def homes(self, job: Job, free: FreeResources) -> Iterator[tuple[str, ...]]:
        """Yield the nodes of a job's array; of one that may run on several GPU types, the most idle type's first."""
        size = size_of(job)
        if size != "none":
            admitting = set(free.admitting(job))
            for model in self._types.of(job):
                yield tuple(node for node in self._nodes[size, model] if node in admitting)
            return
        option = job.options[0]
        if option.workers > 1:
            return
        more = option.demand.cpu_millicores
        fitting = [
            node
            for node in free.admitting(job)
            if self._cpu_held[node] + more <= self._cpu_part[node] and free.workers_on(node, option, 1)
        ]
        yield tuple(sorted(fitting, key=free.cpu_millicores)[:1])  # the fullest


def _fitted(option: Option, most: int) -> Option:
    """Return an option in which no worker has more than ``most`` thousandths of cores, nor do all on a single node."""
    demand, workers = option.demand, option.workers
    asked = demand.cpu_millicores * (workers if option.single_node else 1)
    if asked <= most or demand.gpus or option.groups or option.workers_min is not None:
        return option
    if workers > 1 and not option.single_node:
        total = workers * asked
        update: dict[str, object] = {"workers": -(-total // most)}
        each = Fraction(workers, -(-total // most))
    else:
        each = Fraction(most // workers, demand.cpu_millicores)
        run_time_ms = option.run_time_ms
        update = {} if run_time_ms is None else {"run_time_ms": math.ceil(run_time_ms / each)}
    with_less = ("cpu_millicores", "memory_bandwidth_mbps", *(("memory_mib",) if "workers" in update else ()))
    scaled = {name: math.ceil(getattr(demand, name) * each) for name in with_less}
    return option.model_copy(update={**update, "demand": demand.model_copy(update=scaled)})
