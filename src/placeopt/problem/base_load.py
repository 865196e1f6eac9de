"""What jobs outside a problem hold: the capacity that every state of the problem begins without."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from placeopt.problem.arrays import IntArray
    from placeopt.problem.state import State, Tenant


@dataclass(frozen=True, eq=False)
class BaseLoad:
    """
    Free amounts and counts beside the jobs that a problem does not list, as in `State`, which starts from a copy.

    A round in which running jobs stay as they are needs no more of them than this: it is solved for the waiting jobs
    alone, in time that does not grow with what runs.
    """

    node_free: IntArray  # (N, R)
    gpu_free_milli: IntArray  # (G,)
    gpu_free_memory: IntArray  # (G,)
    gpu_jobs: IntArray  # (G,)
    gpu_utilisation: IntArray  # (G,)
    level_free: tuple[IntArray, ...]
    machine_load: IntArray  # (N, 2)
    domain_load: IntArray  # (D, 2)
    queue_used: IntArray  # (queues, 3)
    tenants: tuple[dict[Tenant, int], ...]  # by node; empty where none disturbs

    @classmethod
    def of(cls, state: State) -> BaseLoad:
        """Return a copy of what is held in ``state``."""
        return cls(
            node_free=state.node_free.copy(),
            gpu_free_milli=state.gpu_free_milli.copy(),
            gpu_free_memory=state.gpu_free_memory.copy(),
            gpu_jobs=state.gpu_jobs.copy(),
            gpu_utilisation=state.gpu_utilisation.copy(),
            level_free=tuple(free.copy() for free in state.level_free),
            machine_load=state.machine_load.copy(),
            domain_load=state.domain_load.copy(),
            queue_used=state.queue_used.copy(),
            tenants=tuple(dict(here) for here in state.tenants),
        )

    def put_into(self, state: State) -> None:
        """Replace the amounts of an empty state by copies of these."""
        state.node_free, state.gpu_free_milli = self.node_free.copy(), self.gpu_free_milli.copy()
        state.gpu_free_memory, state.gpu_jobs = self.gpu_free_memory.copy(), self.gpu_jobs.copy()
        state.gpu_utilisation = self.gpu_utilisation.copy()
        state.level_free = [free.copy() for free in self.level_free]
        state.machine_load, state.domain_load = self.machine_load.copy(), self.domain_load.copy()
        state.queue_used = self.queue_used.copy()
