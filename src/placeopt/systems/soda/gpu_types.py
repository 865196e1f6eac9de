"""The GPU types of a cluster: each has arrays of its own (SODA V-C), and the most idle one takes services (V-D 3)."""

from __future__ import annotations

from collections import Counter

from placeopt.model import Cluster, Job, Placement

Types = tuple[str, ...]
"""GPU models, in the order of the cluster's nodes."""


def gpu_milli_of_types(cluster: Cluster) -> dict[str, int]:
    """Return the thousandths of GPUs of each model of a cluster, in the order of its nodes."""
    milli: dict[str, int] = {}
    for node in cluster.nodes:
        for gpu in cluster.machine_of(node).gpus:
            milli[gpu.model] = milli.get(gpu.model, 0) + 1000
    return milli


def types_of(job: Job, known: Types) -> Types:
    """Return the types, of those that a cluster has, on which a job may run in some option; none without GPUs."""
    demands = [option.demand for option in job.options if option.demand.gpus]
    stated = {model for demand in demands for model in demand.gpu_models}
    if any(not demand.gpu_models for demand in demands):
        return known
    return tuple(model for model in known if model in stated)


class GpuTypes:
    """The nodes of each GPU type, and how much of its GPUs is held."""

    def __init__(self, cluster: Cluster) -> None:
        self.milli = gpu_milli_of_types(cluster)
        self.nodes: dict[str, list[str]] = {model: [] for model in self.milli}
        self._model: dict[tuple[str, str], str] = {}
        for node in cluster.nodes:
            gpus = cluster.machine_of(node).gpus
            self._model |= {(node.id, str(index)): gpu.model for index, gpu in enumerate(gpus)}
            for model in dict.fromkeys(gpu.model for gpu in gpus):
                self.nodes[model].append(node.id)
        self._held = Counter[str]()

    def count(self, placement: Placement, sign: int) -> None:
        """Account for a job that starts or, with ``sign`` -1, ends."""
        for assignment in placement.assignments:
            for gpu, milli in assignment.gpus.items():
                model = self._model.get((assignment.node, gpu))
                if model is not None:
                    self._held[model] += sign * milli

    def of(self, job: Job) -> Types:
        """Return the types on which a job may run, the one with the least part of its GPUs held first (V-D 3)."""
        types = types_of(job, tuple(self.milli))
        return types if len(types) < 2 else tuple(sorted(types, key=lambda one: self._held[one] / self.milli[one]))
