"""GPU memory as it really is: who finds less than it needs, and what it asks for afterwards (Horus 4.2.3)."""

from __future__ import annotations

from placeopt.model import Job, Placement
from placeopt.model.scenario import Arrival, Scenario, largest_gpu_mib

Gpu = tuple[str, str]
"""Node and index."""


class GpuMemory:
    """
    What jobs really hold of every GPU's memory, in the order in which they came there.

    Whoever comes last and does not fit fails; those who came before have what they need.
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
        """Let a job hold what it really needs."""
        option = next(one for one in arrival.job.options if one.id == placement.option)
        need = arrival.actual_gpu_memory_mib
        need = option.demand.gpu_memory_mib if need is None else need
        for gpu in _gpus(placement):
            self._held.setdefault(gpu, {})[placement.job] = need

    def end(self, placement: Placement) -> None:
        """Take it away again."""
        for gpu in _gpus(placement):
            del self._held[gpu][placement.job]

    def left_to(self, placement: Placement) -> int | None:
        """Return how much is left to a job on the fullest of its GPUs, in MiB, if it needs more; None if it has it."""
        short: int | None = None
        for gpu in _gpus(placement):
            left = self._size[gpu]
            for job, need in self._held[gpu].items():
                if job == placement.job:
                    if need > left:
                        short = max(0, left) if short is None else min(short, max(0, left))
                    break
                left -= need
        return short

    def asks_more(self, job: Job, left_mib: int) -> Job:
        """
        Return a job that failed with so much left to it, as it is submitted again.

        It asks for more than that, and for at least ``physics.memory_retry_percent`` of what it asked for before; at
        most for the largest GPU that it may have.
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


def _gpus(placement: Placement) -> list[Gpu]:
    return [(one.node, gpu) for one in placement.assignments for gpu in one.gpus]
