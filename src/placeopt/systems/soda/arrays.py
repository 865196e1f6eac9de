"""Arrays of jobs that divide a cluster between them, and lend each other what is idle (SODA V-C)."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from fractions import Fraction
from typing import Annotated, Literal, Self, cast

from pydantic import Field, model_validator

from placeopt.model import Cluster, Job
from placeopt.model.base import Milliseconds
from placeopt.model.queues import Queue as QueueRecord
from placeopt.model.queues import Quota
from placeopt.scheduling.division import Division
from placeopt.scheduling.drf_queue import DrfQueue
from placeopt.scheduling.occupancy import Held
from placeopt.scheduling.placement_amounts import Amounts, largest_share, requested_amounts
from placeopt.scheduling.policy import Scheduling
from placeopt.scheduling.queue_orders import QueueContext, QueueOrder
from placeopt.scheduling.rules import DIVISIONS, QUEUE_ORDERS, Rule
from placeopt.scheduling.setting import ArrivingJob, Setting
from placeopt.scheduling.waiting_queue import JobQueue
from placeopt.systems.soda.gpu_types import Types, gpu_milli_of_types, types_of
from placeopt.systems.soda.node_arrays import NodeArrays, size_of

Key = tuple[str, Types]
"""What the jobs of an array have in common: a size or a name, and the GPU types on which they may run."""


class Arrays(Rule):
    """
    The cluster divided between arrays of jobs, each with a part of the GPUs, CPU and memory, and what it may borrow.

    Everything that is idle may be borrowed up to ``borrow_percent`` of an array's own part.
    """

    by: Literal["queue", "user", "profile", "size"]
    """
    Which jobs are one array; ``size``: CPU jobs, jobs of fewer than 4 GPUs, and larger ones, the latter two for each
    GPU type, or set of types, on which jobs may run (SODA V-C). A job that names nothing is in an array with others
    that do not.
    """
    parts: Literal["equal", "demand"] = "equal"
    """How large the parts are: all alike, or as the GPU time (CPU time, memory) that jobs known at first ask for."""
    borrow_percent: Annotated[int, Field(ge=0, le=1_000_000)] = 0
    """Idle resources that an array may borrow, in percent of its own part."""
    per_node: bool = False
    """
    With ``size``: nodes belong to the small or the large jobs, by the parts, and of every node's cores CPU jobs have
    their part (SODA V-C); a job is placed within its own array first. False: parts of the cluster alone.
    """

    @model_validator(mode="after")
    def _by_size(self) -> Self:
        if self.per_node and self.by != "size":
            raise ValueError(f"per_node: goes with by 'size', not {self.by!r}")
        return self

    @property
    def reads_run_times(self) -> bool:
        return self.parts == "demand"

    def check(self, scheduling: Scheduling) -> None:
        if scheduling.order is None or scheduling.order.rule not in ("capacity", "drf"):
            raise ValueError("divides: goes with the orders 'capacity' and 'drf'")
        if scheduling.policy.queues:
            raise ValueError("divides: makes the policy's queues; leave policy.queues empty")


class ArrayDivision:
    """
    The arrays of a setting: the array of each job, and the part of the cluster of each array.

    Parts are equal, or in proportion to the GPUs, CPU and memory that the jobs request, weighted by their predicted run
    times. Every array may borrow some percent of its part. ``part``: by array; ``queues``: the arrays as queues of a
    round's policy; ``nodes``: the arrays on every node, None where they are parts of the cluster alone.
    """

    def __init__(self, setting: Setting, arrays: Arrays) -> None:
        self._by = arrays.by
        total = setting.cluster.amounts
        of_type = gpu_milli_of_types(setting.cluster) if arrays.by == "size" else {"": total[0]}
        self._types = tuple(of_type)
        weight: dict[Key, list[int]] = {}
        for arrival in setting.known:
            mine = weight.setdefault(self._key(arrival.job), [0, 0, 0])
            for kind, amount in enumerate(_demand(arrival)):
                mine[kind] = 1 if arrays.parts == "equal" else mine[kind] + amount
        self._names = {key: f"array-{number}" for number, key in enumerate(weight)}

        gpu_milli: dict[tuple[str, str], int] = {}
        part = {key: [0, 0, 0] for key in weight}
        for model, milli in of_type.items():
            # an array of several types asks each of them for a part in proportion to its GPUs
            asked = {
                key: Fraction(mine[0] * milli, sum(of_type[one] for one in self._types_of(key)) or 1)
                for key, mine in weight.items()
                if model in self._types_of(key)
            }
            for key, amount in _in_proportion(milli, asked).items():
                part[key][0] += amount
                gpu_milli[key[0], model] = gpu_milli.get((key[0], model), 0) + amount
        for kind in (1, 2):
            for key, amount in _in_proportion(total[kind], {key: mine[kind] for key, mine in weight.items()}).items():
                part[key][kind] = amount
        self.part: dict[str, Amounts] = {self._names[key]: (mine[0], mine[1], mine[2]) for key, mine in part.items()}
        self.queues = tuple(
            QueueRecord(id=queue, quota=_quota(mine, 100), borrow=_quota(mine, arrays.borrow_percent))
            for queue, mine in self.part.items()
        )
        of_cpu_jobs = part.get(("none", ()), (0, 0, 0))[1]
        self.nodes = NodeArrays(setting.hardware, gpu_milli, of_cpu_jobs) if arrays.per_node else None

    @property
    def by_jobs(self) -> dict[Hashable, Amounts]:
        """The parts, by what the jobs of an array have in common."""
        return {key: self.part[name] for key, name in self._names.items()}

    def of(self, job: Job) -> str:
        """Return the array of a job, as the id of a queue."""
        return self._names[self._key(job)]

    def queue(self, cluster: Cluster, *, fair: bool) -> JobQueue:
        """Return an empty queue of arrays; see `Division`."""
        return JobArrayQueue(cluster, self, fair=fair)

    def _key(self, job: Job) -> Key:
        if self._by == "size":
            return size_of(job), types_of(job, self._types)
        named = {"queue": job.queue, "user": job.user, "profile": job.profile}[self._by]
        return "" if named is None else f"={named}", self._types

    def _types_of(self, key: Key) -> Types:
        """Return the GPU types whose GPUs an array has a part of; that of CPU jobs, if of any, of all."""
        return self._types if key[0] == "none" else key[1]


DIVISIONS.register("arrays", ArrayDivision, Arrays)


class JobArrayQueue(DrfQueue):
    """
    A queue of arrays: at every start, the array that holds the smallest multiple of its part comes next.

    The jobs of an array come in order of arrival or, with ``fair``, by dominant resource fairness between the users of
    the array.
    """

    def __init__(self, cluster: Cluster, division: ArrayDivision, *, fair: bool = False) -> None:
        super().__init__(cluster)
        self._cluster, self._division, self._fair = cluster, division, fair

    def new_queue(self) -> JobQueue:
        return DrfQueue(self._cluster) if self._fair else super().new_queue()

    def started(self, held: Held) -> None:
        super().started(held)
        if self._fair:
            self.queue_of(self.user(held.job)).started(held)

    def ended(self, held: Held, now_ms: Milliseconds) -> None:
        super().ended(held, now_ms)
        if self._fair:
            self.queue_of(self.user(held.job)).ended(held, now_ms)

    def user(self, job: Job) -> str | None:
        return self._division.of(job)

    @property
    def nodes(self) -> NodeArrays | None:
        """The arrays on every node."""
        return self._division.nodes

    @property
    def arrays(self) -> Iterable[str]:
        """All arrays."""
        return self._division.part

    def share(self, user: str | None) -> float:
        """Return the largest multiple of its part of any resource that an array holds."""
        return largest_share(self.held(user), self._part(user), of_nothing=1.0)

    def exceeds_part(self, array: str | None, more: Amounts = (0, 0, 0)) -> bool:
        """Return whether an array holds more than its part, or would with so much more."""
        amounts = zip(self.held(array), more, self._part(array), strict=True)
        return any(held + added > most for held, added, most in amounts)

    def _part(self, array: str | None) -> Amounts:
        return self._division.part.get(array or "", (0, 0, 0))


class ArrayShare(Rule):
    """The array that holds least of its part first."""

    def check(self, scheduling: Scheduling) -> None:
        if scheduling.divides is None:
            raise ValueError("divides: the order 'capacity' needs it")
        if scheduling.strict:
            raise ValueError("strict: arrays are weighed against each other; there is no first job to wait for")


def _by_array(context: QueueContext) -> JobQueue:
    return cast(Division, context.division).queue(context.setting.cluster, fair=False)


QUEUE_ORDERS.register("capacity", QueueOrder(_by_array), ArrayShare)


def _demand(arrival: ArrivingJob) -> Amounts:
    """Return what a job's first option requests, times its predicted run time."""
    option = arrival.job.options[0]
    run_time_ms = option.run_time_ms or 1
    gpu_milli, cpu, memory = requested_amounts(option, arrival.asked(option))
    return gpu_milli * run_time_ms, cpu * run_time_ms, memory * run_time_ms


def _in_proportion(total: int, weight: Mapping[Key, Fraction | int]) -> dict[Key, int]:
    """Return the parts of a total, rounded up; without weights each has all of it."""
    whole = sum(weight.values())
    return {key: math.ceil(Fraction(total * mine) / whole) if whole else total for key, mine in weight.items()}


def _quota(part: Amounts, percent: int) -> Quota:
    gpus, cpu, memory = (amount * percent // 100 for amount in part)
    return Quota(gpu_milli=gpus, cpu_millicores=cpu, memory_mib=memory)
