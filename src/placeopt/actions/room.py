"""How much of each limited resource a placement takes, and how much of it there is: amounts that add up, by name."""

from __future__ import annotations

from placeopt.check.capacity import add_use, crossing_loads
from placeopt.check.directory import Directory, PlacedJob
from placeopt.model import Policy
from placeopt.model.policy import Queue

Resource = tuple[str, ...]
"""Kind of the resource, then of what: node, GPU, domain or queue."""

WHOLE_GPU_MILLI = 1000
OF_QUEUES = ("gpu_milli", "cpu_millicores", "memory_mib")


class Room:
    """The resources of a cluster under a policy, as the referee counts them."""

    def __init__(self, directory: Directory, policy: Policy) -> None:
        self._directory, self._policy = directory, policy
        self._queues = {queue.id: queue for queue in policy.queues}
        self._jobs_per_gpu = 1 if policy.share_mode == "exclusive" else policy.jobs_per_gpu_max

    def taken(self, held: PlacedJob) -> dict[Resource, int]:
        """Return what a placed job takes: requests alone, since what is granted above them is free for others."""
        demand = held.option.demand
        out: dict[Resource, int] = {}
        for assignment in held.placement.assignments:
            node, workers = assignment.node, len(assignment.workers)
            out["cpu", node] = workers * demand.cpu_millicores
            out["memory", node] = workers * demand.memory_mib
            out["memory_bandwidth", node] = workers * demand.memory_bandwidth_mbps
            out["pcie_bandwidth", node] = workers * demand.pcie_bandwidth_mbps
            for name, amount in demand.resources.items():
                out["resource", node, name] = workers * amount
            for gpu in assignment.gpus:
                if self._policy.share_mode == "fraction":
                    out["gpu_milli", node, gpu] = demand.gpu_milli
                if self._jobs_per_gpu is not None:
                    out["gpu_jobs", node, gpu] = 1
                out["gpu_memory", node, gpu] = demand.gpu_memory_mib
        group = "gpu_jobs_uplink" if demand.gpus else "cpu_jobs_uplink"
        for (kind, name), mbps in crossing_loads(self._directory, held):
            out[group, kind, name] = mbps
        if held.job.queue in self._queues:
            used = {held.job.queue: [0, 0, 0]}
            add_use(used, held, 1)
            for resource, amount in zip(OF_QUEUES, used[held.job.queue], strict=True):
                out["queue", held.job.queue, resource] = amount
        return {resource: amount for resource, amount in out.items() if amount}

    def limit(self, resource: Resource) -> int | None:
        """Return how much of a resource jobs may take together; None where nothing limits it, or it is not listed."""
        kind, *of = resource
        if kind == "queue":
            return self._queue_limit(self._queues[of[0]], OF_QUEUES.index(of[1]))
        if kind in ("gpu_jobs_uplink", "cpu_jobs_uplink"):
            return self._uplink_limit(kind, *of)
        machine = self._directory.machine_of.get(of[0])
        if machine is None:
            return None
        if kind == "gpu_milli":
            return WHOLE_GPU_MILLI
        if kind == "gpu_jobs":
            return self._jobs_per_gpu
        if kind == "gpu_memory":
            number = int(of[1])
            return machine.gpus[number].memory_mib if number < len(machine.gpus) else None
        if kind == "resource":
            return machine.resources.get(of[1], 0)
        usable = self._policy.usable
        capacity, percent = {
            "cpu": (machine.cpu_millicores, 100),
            "memory": (machine.memory_mib, 100),
            "memory_bandwidth": (machine.memory_bandwidth_mbps, usable.memory_bandwidth_percent),
            "pcie_bandwidth": (machine.pcie_bandwidth_mbps, usable.pcie_bandwidth_percent),
        }[kind]
        return None if capacity is None else percent * capacity // 100

    def _uplink_limit(self, group: str, kind: str, name: str) -> int | None:
        directory, usable = self._directory, self._policy.usable
        capacity = directory.machine_of[name].network_bandwidth_mbps if kind == "node" else directory.uplinks[name]
        gpu_jobs = group == "gpu_jobs_uplink"
        percent = usable.network_gpu_jobs_percent if gpu_jobs else usable.network_cpu_jobs_percent
        return None if capacity is None else percent * capacity // 100

    def _queue_limit(self, queue: Queue, number: int) -> int | None:
        limits = []
        quota: int | None = getattr(queue.quota, OF_QUEUES[number])
        if quota is not None:
            limits.append(quota + (getattr(queue.borrow, OF_QUEUES[number]) or 0))
        if queue.dominant_share_percent is not None:
            percent = queue.dominant_share_percent + queue.borrow_percent
            limits.append(percent * self._directory.total[number] // 100)
        return min(limits, default=None)
