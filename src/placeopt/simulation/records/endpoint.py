"""Inference that answers requests: load, replicas and latency."""

from itertools import pairwise
from typing import Annotated, Self

from pydantic import Field, model_validator

from placeopt.model.base import Count, Id, Milliseconds, Name, PositiveCount, Record
from placeopt.model.group import Demand

RateMilli = Annotated[int, Field(ge=0, le=10**12)]
"""Thousandths of requests a second."""


class LoadStep(Record):
    """The load from a moment on: a rate of requests, or clients."""

    from_ms: Milliseconds
    """Start of the step."""
    rate_milli: RateMilli | None = None
    """Requests a second, in thousandths, until the next step, however long answers take."""
    clients: Count | None = None
    """
    Clients that send requests until the next step. Each waits for the answer, and then for the endpoint's
    ``think_time_ms``, so that the rate falls as answers take longer.
    """

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.rate_milli is None) == (self.clients is None):
            raise ValueError("rate_milli, clients: exactly one of them must be stated")
        return self

    @property
    def amount(self) -> int:
        """The rate in thousandths, or the number of clients."""
        return self.rate_milli or self.clients or 0


class Replica(Record):
    """One way to run a replica: what it needs and what it serves."""

    demand: Demand
    """Resources of one replica."""
    rate_milli: Annotated[RateMilli, Field(ge=1)]
    """The most requests that it serves a second, in thousandths."""
    latency_ms: Annotated[Milliseconds, Field(ge=1)]
    """Time of an answer without waiting."""
    start_ms: Milliseconds = 0
    """
    Time that it holds its resources before it answers: image, model, warm-up. Replicas that begin with the endpoint's
    first load step answer at once.
    """
    profiled_rate_milli: Annotated[RateMilli, Field(ge=1)] | None = None
    """What a profile says of ``rate_milli`` (SODA V-D), by which policies count replicas; None: the same."""


class Autoscaler(Record):
    """
    When the number of replicas is decided, and by which load (Kubernetes' horizontal pod autoscaler).

    By default at every change of the load, by the load of that moment.
    """

    period_ms: Milliseconds = 0
    """Time between decisions, which are at multiples of it; 0: whenever the measured load changes."""
    lag_ms: Milliseconds = 0
    """Age of the load that a decision sees: time to collect and publish the measurement."""


class Endpoint(Record):
    """
    A service that answers requests with replicas of a model, whose number a policy lets follow the load.

    Every replica is a job of kind ``inference``, without an end of its own: it arrives when the load needs it, and
    leaves when the load no longer does.
    """

    id: Id
    """Unique name; its replicas are jobs with names derived from it."""
    user: Name | None = None
    """Owner of the replicas."""
    priority: Annotated[int, Field(ge=-1_000_000, le=1_000_000)] = 0
    """Priority of the replicas."""
    gpu: Replica
    """A replica with GPUs."""
    cpu: Replica | None = None
    """On CPU cores alone, where so it meets the target (SODA V-D)."""
    latency_target_ms: Annotated[Milliseconds, Field(ge=1)]
    """An answer that takes longer is late: the service level is violated."""
    replicas_max: PositiveCount = 1000
    """Largest number of replicas."""
    autoscaler: Autoscaler = Autoscaler()
    """How late the number of replicas follows the load."""
    load: Annotated[tuple[LoadStep, ...], Field(min_length=1, max_length=1_000_000)]
    """Request rates, or numbers of clients, over time, ascending by ``from_ms``."""
    think_time_ms: Milliseconds | None = None
    """Mean time from an answer to the client's next request, where the load is stated as clients."""
    until_ms: Milliseconds
    """When the last step ends."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for i, (step, following) in enumerate(pairwise(self.load)):
            if step.from_ms >= following.from_ms:
                raise ValueError(f"load[{i + 1}].from_ms: {following.from_ms}, expected after {step.from_ms}")
        if self.until_ms <= self.load[-1].from_ms:
            raise ValueError(f"until_ms: {self.until_ms}, expected after the last step, {self.load[-1].from_ms}")
        closed = self.think_time_ms is not None
        if any((step.clients is not None) != closed for step in self.load):
            raise ValueError("load, think_time_ms: all steps state clients with it, and none without")
        if closed and self.cpu is not None:
            raise ValueError("think_time_ms: clients are served by replicas of one kind; leave out cpu")
        if not self.gpu.demand.gpus or (self.cpu is not None and self.cpu.demand.gpus):
            raise ValueError("gpu, cpu: a replica of the first has GPUs, one of the second none")
        for name, replica in (("gpu", self.gpu), ("cpu", self.cpu)):
            if replica is not None and replica.latency_ms > self.latency_target_ms:
                raise ValueError(
                    f"{name}.latency_ms: {replica.latency_ms} is above latency_target_ms = {self.latency_target_ms}; "
                    "such replicas are always late: leave them out"
                )
        return self
