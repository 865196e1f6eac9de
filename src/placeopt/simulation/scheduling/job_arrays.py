"""The cluster divided between arrays of jobs, with borrowing; next comes the array that holds least of its part."""

from __future__ import annotations

from collections.abc import Iterable

from placeopt.model import Cluster, Job, Placement
from placeopt.model.policy import Queue as QueueRecord
from placeopt.model.policy import Quota
from placeopt.model.scenario import Arrival, Scenario
from placeopt.model.scheduling import Arrays
from placeopt.simulation.scheduling.drf_queue import DrfQueue
from placeopt.simulation.scheduling.waiting_queue import JobQueue

LARGE = 4
"""GPUs from which on a job is of the array of large ones (SODA V-C)."""
Amounts = tuple[int, int, int]
"""Thousandths of GPUs, millicores, MiB of memory."""


class ArrayDivision:
    """
    The arrays of a scenario: which job is of which, and what is theirs.

    Equal parts, or parts of GPUs, CPU and memory in proportion to what the jobs ask for, weighed by the run times that
    they predict. Every array may borrow some percent of its part.
    """

    def __init__(self, scenario: Scenario, arrays: Arrays) -> None:
        self._by = arrays.by
        names: dict[str, str] = {}
        for arrival in scenario.arrivals:
            names.setdefault(self._name(arrival.job), f"array-{len(names)}")
        self._names = names
        total = totals(scenario.cluster)
        weight = {queue: [0, 0, 0] for queue in names.values()}
        for arrival in scenario.arrivals:
            asked = (1, 1, 1) if arrays.parts == "equal" else _asked(arrival)
            mine = weight[names[self._name(arrival.job)]]
            for kind, amount in enumerate(asked):
                mine[kind] = 1 if arrays.parts == "equal" else mine[kind] + amount
        sums = [sum(mine[kind] for mine in weight.values()) for kind in range(3)]
        self.part: dict[str, Amounts] = {}
        for queue, mine in weight.items():
            gpus, cpu, memory = (
                -(-total[kind] * mine[kind] // sums[kind]) if sums[kind] else total[kind] for kind in range(3)
            )
            self.part[queue] = (gpus, cpu, memory)
        self.queues = tuple(
            QueueRecord(id=queue, quota=_quota(part, 100), borrow=_quota(part, arrays.borrow_percent))
            for queue, part in self.part.items()
        )

    def of(self, job: Job) -> str:
        """Return the array of a job, as the id of a queue."""
        return self._names[self._name(job)]

    def _name(self, job: Job) -> str:
        if self._by == "size":
            gpus = max(option.workers * option.demand.gpus for option in job.options)
            return "none" if not gpus else "small" if gpus < LARGE else "large"
        named = {"queue": job.queue, "user": job.user, "profile": job.profile}[self._by]
        return "" if named is None else f"={named}"


class JobArrayQueue(DrfQueue):
    """
    Arrays in turns: at every start, the one that holds the smallest multiple of its part comes next.

    Its own jobs come in order of arrival, or (``fair``) its users in turns, by what they hold as jobs of the array.
    """

    def __init__(self, cluster: Cluster, division: ArrayDivision, *, fair: bool = False) -> None:
        super().__init__(cluster)
        self._cluster, self._division, self._fair = cluster, division, fair

    def line(self) -> JobQueue:
        """See ``DrfQueue``."""
        return DrfQueue(self._cluster) if self._fair else super().line()

    def holds(self, job: Job, placement: Placement, sign: int) -> None:
        """See ``JobQueue``."""
        super().holds(job, placement, sign)
        if self._fair:
            self._users[self.user(job)].holds(job, placement, sign)

    def user(self, job: Job) -> str | None:
        """See ``DrfQueue``."""
        return self._division.of(job)

    @property
    def arrays(self) -> Iterable[str]:
        """All arrays."""
        return self._division.part

    def share(self, user: str | None) -> float:
        """Return the largest multiple of its part of any resource that an array holds."""
        part = self._division.part.get(user or "", (0, 0, 0))
        held = self._held.get(user, (0, 0, 0))
        return max(have / most if most else float(have) for have, most in zip(held, part, strict=True))

    def beyond(self, user: str | None, more: Amounts = (0, 0, 0)) -> bool:
        """Tell whether an array holds more than its part, or would with so much more."""
        part = self._division.part.get(user or "", (0, 0, 0))
        held = self._held.get(user, (0, 0, 0))
        return any(have + new > most for have, new, most in zip(held, more, part, strict=True))


def amounts_of(placement: Placement) -> Amounts:
    """Return what a placement holds."""
    return (
        sum(sum(one.gpus.values()) for one in placement.assignments),
        sum(one.cpu_millicores for one in placement.assignments),
        sum(one.memory_mib for one in placement.assignments),
    )


def totals(cluster: Cluster) -> Amounts:
    """Return what a cluster has."""
    machines = {machine.id: machine for machine in cluster.machines}
    used = [machines[node.machine] for node in cluster.nodes]
    return (
        1000 * sum(len(machine.gpus) for machine in used),
        sum(machine.cpu_millicores for machine in used),
        sum(machine.memory_mib for machine in used),
    )


def _asked(arrival: Arrival) -> Amounts:
    """Return what a job's first option asks for, times its predicted run time."""
    option = arrival.job.options[0]
    demand, workers = option.demand, arrival.asked(option)
    span = option.run_time_ms or 1
    milli = demand.gpus * demand.gpu_milli
    return (workers * milli * span, workers * demand.cpu_millicores * span, workers * demand.memory_mib * span)


def _quota(part: Amounts, percent: int) -> Quota:
    gpus, cpu, memory = (amount * percent // 100 for amount in part)
    return Quota(gpu_milli=gpus, cpu_millicores=cpu, memory_mib=memory)
