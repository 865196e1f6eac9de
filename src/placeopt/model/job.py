"""Jobs: what is asked for, in which ways it may run, and what it is worth."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from placeopt.model.base import (
    Amounts,
    Count,
    Id,
    Labels,
    Mbps,
    Mib,
    Milli,
    Millicores,
    Milliseconds,
    Name,
    Percent,
    PositiveCount,
    Record,
    Resources,
    Thousandths,
    Value,
    Weight,
)
from placeopt.model.origin import JobOrigin

JobKind = Literal["training", "inference", "modelling", "cpu"]
MAX_WORKERS = 100_000
MAX_PRIORITY = 1_000_000
MAX_EDGES = 100_000
"""A ring of as many workers as a job may have, or all pairs of 447 workers; all pairs alike need no edges."""


class Demand(Record):
    """What one worker needs. All its GPUs are on one node, and are different GPUs."""

    gpus: Annotated[int, Field(ge=0, le=1024)] = 1
    """GPUs of one worker; 0 for a CPU worker."""
    gpu_milli: Milli = 1000
    """Requested share of each GPU: what is guaranteed. Below 1000 only with ``gpus`` = 1."""
    gpu_milli_limit: Milli | None = None
    """Most that may be granted (DynamoML 3.1); left out, the request."""
    gpu_models: tuple[Name, ...] = ()
    """GPU models allowed; empty: any."""
    gpu_memory_mib: Mib = 0
    """Memory needed on each GPU; 0: none is requested."""
    gpu_utilisation_percent: Percent = 0
    """Expected utilisation of each GPU (Horus)."""
    cpu_millicores: Millicores = 0
    """CPU of one worker, in thousandths of a core."""
    memory_mib: Mib = 0
    """Host memory of one worker."""
    memory_bandwidth_mbps: Mbps = 0
    """Host memory bandwidth of one worker, in MB/s."""
    pcie_bandwidth_mbps: Mbps = 0
    """PCIe bandwidth of one worker, in MB/s."""
    network_bandwidth_mbps: Mbps = 0
    """Loads uplinks by the hose model; a job with one worker loads none."""
    resources: Resources = Field(default_factory=Amounts)
    """What one worker takes of the named resources of its node (``Machine.resources``)."""

    @model_validator(mode="after")
    def _share(self) -> Self:
        if self.gpu_milli < 1000 and self.gpus != 1:
            raise ValueError(
                f"gpu_milli: {self.gpu_milli} with gpus = {self.gpus}; a share below 1000 goes with gpus = 1"
            )
        if self.gpu_milli_limit is not None and self.gpu_milli_limit < self.gpu_milli:
            raise ValueError(
                f"gpu_milli_limit: {self.gpu_milli_limit} is below the request gpu_milli = {self.gpu_milli}"
            )
        return self


class Split(Record):
    """
    How a job's workers are divided among the domains of one level.

    They are in exactly ``domains`` of them, with exactly ``workers`` in each where that is stated. "96 = 2 x 48 = 6 x
    16 per rack" is two splits. ``domains`` = 1 keeps a job together.
    """

    level: Id
    """``node`` or a domain level of the cluster, such as ``rack``."""
    domains: PositiveCount
    """Number of domains that hold workers."""
    workers: PositiveCount | None = None
    """Workers in each of them; null: any distribution."""


class Option(Record):
    """
    One way to run a job: how many workers of what demand, how they lie, and what that is worth.

    With ``workers_min`` the job is elastic: it runs with any number from ``workers_min`` to ``workers``, rank 0 being
    the chief that is never taken (DynamoML 3.3), and is worth ``value`` at the minimum plus ``value_per_extra_worker``
    for each worker above. Without, it is a gang: all ``workers`` or none.
    """

    id: Id = "default"
    """Name of the option, unique in the job."""
    workers: Annotated[int, Field(ge=1, le=MAX_WORKERS)] = 1
    """Number of workers; of an elastic option the largest."""
    workers_min: Annotated[int, Field(ge=1, le=MAX_WORKERS)] | None = None
    """Smallest number of workers of an elastic option; null: a gang."""
    demand: Demand = Demand()
    """Resources of one worker."""
    single_node: bool = False
    """Whether all workers must share one node."""
    workers_per_node_max: PositiveCount | None = None
    """1 is anti-affinity between workers."""
    splits: tuple[Split, ...] = ()
    """Rules for the distribution of workers over domains."""
    value: Value = 1
    """Value of the job in this option; of an elastic option with ``workers_min`` workers."""
    value_per_extra_worker: Value = 0
    """Value of each worker above ``workers_min``."""
    utility_thousandths: Thousandths | None = None
    """Predicted utility; below the job's minimum the option has no value and is not taken."""
    run_time_ms: Milliseconds | None = None
    """Expected run time alone, its GPUs as close together as they can be."""
    rate_milli: Annotated[int, Field(ge=0, le=10**12)] | None = None
    """Requests that the option serves a second, in thousandths."""
    latency_ms: Milliseconds | None = None
    """Time of one answer."""
    cost_milli: Annotated[int, Field(ge=0, le=10**9)] = 0
    """Cost of the option wherever it runs (GENIE eq. 10); enters the cost level by ``weights.resource``."""

    @model_validator(mode="after")
    def _workers(self) -> Self:
        if self.workers_min is not None and self.workers_min > self.workers:
            raise ValueError(f"workers_min: {self.workers_min} is above workers = {self.workers}")
        if self.value_per_extra_worker and self.workers_min is None:
            raise ValueError("value_per_extra_worker: goes with 'workers_min'; a gang has one number of workers")
        for i, split in enumerate(self.splits):
            if split.workers is not None and split.workers * split.domains != self.workers:
                raise ValueError(
                    f"splits[{i}]: {split.domains} x {split.workers} is not workers = {self.workers}; "
                    "an exact split covers all workers"
                )
            if split.workers is not None and self.workers_min not in (None, self.workers):
                raise ValueError(f"splits[{i}].workers: an exact split goes with a fixed number of workers")
        return self


class Edge(Record):
    """Traffic between two workers."""

    ranks: tuple[Count, Count]
    """Ranks of the two workers."""
    weight: Weight
    """Traffic weight of each pair of GPUs of the two workers."""


class Communication(Record):
    """
    Traffic weights of a job (SC'17 section 5.1: 4 tiny batch .. 1 big batch).

    ``weight`` holds for every pair of the job's GPUs (data parallel). With ``edges``, pairs of GPUs of two different
    workers weigh what the edge says, 0 where there is none, and ``weight`` holds inside a worker only.
    """

    weight: Weight = 0
    """Traffic weight of every pair of the job's GPUs; with ``edges``, of pairs inside one worker."""
    edges: Annotated[tuple[Edge, ...], Field(max_length=MAX_EDGES)] = ()
    """Traffic between pairs of workers; empty: every pair of GPUs has ``weight``."""
    spread_slowdown_thousandths: Thousandths | None = None
    """Excess run time with its GPUs as far apart as a machine allows; left out, the policy's (``postpone``)."""


class Job(Record):
    """A job, waiting or running. It runs in at most one of its options."""

    id: Id
    """Unique name of the job."""
    kind: JobKind = "training"
    """Kind of work; a job of kind ``cpu`` has no GPUs."""
    user: Name | None = None
    """Owner of the job."""
    queue: Id | None = None
    """Queue of the policy whose quota the job uses."""
    priority: Annotated[int, Field(ge=-MAX_PRIORITY, le=MAX_PRIORITY)] = 0
    """Orders queues; what a job is worth stands in its options."""
    arrival_ms: Milliseconds = 0
    """Time of submission."""
    deadline_ms: Milliseconds | None = None
    """Time by which the job should end; null: none."""
    expected_completion_ms: Milliseconds | None = None
    """ECT, an absolute time (GENIE 5.2)."""
    options: Annotated[tuple[Option, ...], Field(min_length=1, max_length=256)] = (Option(),)
    """Alternative ways to run the job; exactly one is chosen."""
    communication: Communication = Communication()
    """Traffic between the job's GPUs."""
    profile: Name | None = None
    """Its row in the instance's interference profiles."""
    utility_min_thousandths: Thousandths | None = None
    """Below it the job waits: options that state less are not taken, places that give less by ``policy.postpone``."""
    node_selector: Labels = Field(default_factory=dict)
    """Effective labels that a node must carry."""
    nodes_allowed: tuple[Id, ...] | None = None
    """Nodes on which it may run; null: all nodes."""
    tolerations: tuple[Id, ...] = ()
    """Taints that the job tolerates."""
    origin: JobOrigin | None = None
    """The job in the system that it comes from."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        seen: set[str] = set()
        for i, option in enumerate(self.options):
            if option.id in seen:
                raise ValueError(f"options[{i}].id: {option.id!r} appears twice; ids of options are unique in a job")
            seen.add(option.id)
            if self.kind == "cpu" and option.demand.gpus:
                raise ValueError(
                    f"options[{i}].demand.gpus: {option.demand.gpus} in a job of kind 'cpu'; use 0, or another kind"
                )
        if self.communication.edges:
            self._check_edges()
        return self

    def _check_edges(self) -> None:
        most = max(option.workers for option in self.options)
        pairs: set[tuple[int, int]] = set()
        for i, edge in enumerate(self.communication.edges):
            a, b = sorted(edge.ranks)
            if a == b or b >= most:
                raise ValueError(
                    f"communication.edges[{i}].ranks: {list(edge.ranks)} must be two different ranks below {most}"
                )
            if (a, b) in pairs:
                raise ValueError(f"communication.edges[{i}].ranks: workers {a} and {b} have an edge already")
            pairs.add((a, b))
