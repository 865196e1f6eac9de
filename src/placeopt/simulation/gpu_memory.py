"""Actual use of GPU memory: which jobs get less than they need, and what they request afterwards (Horus 4.2.3)."""

from __future__ import annotations

from placeopt.model import Job, Placement
from placeopt.model.scenario import Arrival, Scenario, largest_gpu_mib
from placeopt.simulation.scheduling.interference_monitor import gpus_of

Gpu = tuple[str, str]
"""Node and index."""


class GpuMemory:
    """
    The memory of every GPU that jobs actually use, in the order in which they started there.

    The last job that does not fit fails; earlier jobs get what they need.
    """

    def __init__(self, scenario: Scenario) -> None:
        self._cluster, self._physics = scenario.cluster, scenario.physics
        machines = {machine.id: machine for machine in scenario.cluster.machines}
        self._size = {
            (node.id, str(index)): gpu.memory_mib
            for node in scenario.cluster.nodes
            for index, gpu in enumerate(machines[node.machine].gpus)
        }
        self._held: dict[Gpu, dict[str, int]] = {}

    def start(self, arrival: Arrival, placement: Placement) -> None:
        """Let a job use what it actually needs."""
        option = next(one for one in arrival.job.options if one.id == placement.option)
        need = arrival.actual_gpu_memory_mib
        need = option.demand.gpu_memory_mib if need is None else need
        for gpu in gpus_of(placement):
            self._held.setdefault(gpu, {})[placement.job] = need

    def end(self, placement: Placement) -> None:
        """Free the memory of a job."""
        for gpu in gpus_of(placement):
            del self._held[gpu][placement.job]

    def left_to(self, placement: Placement) -> int | None:
        """Return how much is left to a job on the fullest of its GPUs, in MiB, if it needs more; None otherwise."""
        short: int | None = None
        for gpu in gpus_of(placement):
            left = self._size[gpu]
            for job, need in self._held[gpu].items():
                if job == placement.job:
                    if need > left:
                        short = max(0, left) if short is None else min(short, max(0, left))
                    break
                left -= need
        return short

    def with_larger_request(self, job: Job, left_mib: int) -> Job:
        """
        Return a job that failed with so much memory left to it, as it is submitted again.

        It requests more than that, at least ``physics.memory_retry_percent`` of its earlier request, and at most the
        memory of the largest GPU that it may use.
        """
        options = []
        for option in job.options:
            before = option.demand.gpu_memory_mib
            more = max(left_mib + 1, -(-before * self._physics.memory_retry_percent // 100))
            demand = option.demand.model_copy(
                update={"gpu_memory_mib": max(before, min(more, largest_gpu_mib(self._cluster, option)))}
            )
            options.append(option.model_copy(update={"demand": demand}))
        return job.model_copy(update={"options": tuple(options)})
