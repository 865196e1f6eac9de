"""Where replicas run that CPU cores could serve: on those, or on a GPU in their place."""

from __future__ import annotations

from collections.abc import Iterable

from placeopt.model import Job
from placeopt.scheduling.placement_amounts import requested_amounts
from placeopt.scheduling.policy import Scheduling
from placeopt.simulation.endpoints import CoreStay, core_stays
from placeopt.simulation.records.endpoint import Endpoint


class ReplicaChoice:
    """
    The choice between replicas on CPU cores and one with GPUs, made when the first of them comes (SODA V-D 2).

    "When many CPU jobs are queuing, and the GPU resource array is idle", GPUs are taken. Our reading: CPU jobs wait
    that ask for as many cores as the replicas would take, and GPUs are idle beyond those that waiting jobs ask for. The
    choice holds until GPUs are wanted anyway: services do not move back and forth.
    """

    def __init__(self, endpoints: Iterable[Endpoint], scheduling: Scheduling) -> None:
        self._stay_of: dict[str, CoreStay] = {}
        self._takes_gpus: dict[str, bool] = {}
        for endpoint in endpoints:
            for stay in core_stays(endpoint, scheduling):
                self._stay_of |= {arrival.job.id: stay for arrival in (*stay.on_cores, stay.instead)}

    def concerns(self, job: str) -> bool:
        """Return whether a job is one of the replicas between which is chosen."""
        return job in self._stay_of

    def comes(self, job: str, waiting: Iterable[Job], num_idle_gpus: int) -> bool:
        """
        Return whether a replica comes, which is decided for all that it could replace when the first is asked about.

        Parameters
        ----------
        job
            A replica that `concerns` is true of, when it would arrive.
        waiting
            All jobs that wait now.
        num_idle_gpus
            GPUs that no running job holds.
        """
        stay = self._stay_of[job]
        instead = stay.instead.job.id
        if instead not in self._takes_gpus:
            self._takes_gpus[instead] = _gpus_serve(stay, waiting, num_idle_gpus)
        return self._takes_gpus[instead] == (job == instead)


def _gpus_serve(stay: CoreStay, waiting: Iterable[Job], num_idle_gpus: int) -> bool:
    """Return whether CPU jobs wait for the cores that the replicas would take, and GPUs are idle."""
    cores, idle_milli = 0, 1000 * num_idle_gpus
    for job in waiting:
        gpu_milli, millicores, _ = requested_amounts(job.options[0], job.options[0].workers)
        idle_milli -= gpu_milli
        cores += millicores if job.kind == "cpu" else 0
    return cores >= stay.first_millicores and idle_milli >= 1000 * stay.instead.job.options[0].demand.gpus
