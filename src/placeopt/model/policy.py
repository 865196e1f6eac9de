"""The policy of a round: how GPUs are shared, what is allowed, what costs count and by how much."""

import hashlib
from functools import cached_property
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Discriminator, Field, Tag, model_validator

from placeopt.model.base import (
    Id,
    JobCount,
    Millicores,
    Milliseconds,
    Name,
    Percent,
    PositiveCount,
    Record,
    Thousandths,
    Value,
    Weight,
)
from placeopt.model.costs import CostParameters, Weights
from placeopt.model.group import GpuShare
from placeopt.model.machine import NodeAmount
from placeopt.model.queues import Flavor, FlavorAllowance, Queue, check_queues

ShareMode = Literal["exclusive", "fraction", "overcommit"]
QueueOrder = Literal["fcfs", "priority", "swaf", "value_density", "weighted_fair"]


class Usable(Record):
    """Usable part of bandwidths in percent (SODA V-E: memory 75; network 75 for GPU jobs, 25 for CPU jobs)."""

    memory_bandwidth_percent: Percent = 75
    """Of a node's host memory bandwidth."""
    pcie_bandwidth_percent: Percent = 100
    """Of a node's PCIe bandwidth."""
    network_gpu_jobs_percent: Percent = 75
    """Of a network bandwidth, for jobs with GPUs."""
    network_cpu_jobs_percent: Percent = 25
    """Of a network bandwidth, for jobs without GPUs."""

    def percent(self, amount: NodeAmount) -> int:
        """Return the percentage of an amount of a node that may be taken."""
        return 100 if amount.usable is None else int(getattr(self, amount.usable))


Millionths = Annotated[int, Field(ge=0, le=10**9)]


class SlowdownCurve(Record):
    """
    A slowdown of one's own making: f(x) = (square x^2 + linear x + constant) / 10^6, x the use of a GPU as a fraction.

    No coefficient is below 0, so that f grows and bounds on its cost hold; and f(1) is at least 1: no job gets faster.
    ``placeopt.predict.fit_curve`` fits one to measured pairs.
    """

    square_millionths: Millionths = 0
    """Coefficient of x^2, in millionths."""
    linear_millionths: Millionths = 0
    """Coefficient of x, in millionths."""
    constant_millionths: Millionths = 0
    """Constant, in millionths."""

    @model_validator(mode="after")
    def _slows(self) -> Self:
        full = self.square_millionths + self.linear_millionths + self.constant_millionths
        if full < 10**6:
            raise ValueError(f"sum to {full}, the slowdown of a GPU in full use; expected 1000000 or more")
        return self


Curve = Annotated[
    Annotated[Literal["gtx-1080", "rtx-2080"], Tag("published")] | Annotated[SlowdownCurve, Tag("fitted")],
    Discriminator(lambda value: "published" if isinstance(value, str) else "fitted"),
]
"""Slowdown by the use of a shared GPU: a published quadratic by GPU generation (Horus fig. 4), or one's own."""


class Interference(Record):
    """Which model of slowdown counts: see ``placeopt.terms.costs.interference``."""

    model: Literal["pairwise", "worst", "curve"] = "pairwise"
    """``pairwise``: sum over co-runners; ``worst``: the worst of them; ``curve``: by GPU utilisation."""
    curve: Curve = "rtx-2080"
    """For ``curve``, and for costs by the use of GPUs."""


class TargetWorker(GpuShare):
    """A kind of worker that is expected to come, ``count`` times as often as one of count 1."""

    gpu_models: tuple[Name, ...] = ()
    """GPU models allowed; empty: any."""
    cpu_millicores: Millicores = 0
    """CPU of the worker, in thousandths of a core."""
    count: PositiveCount = 1
    """Relative frequency of such workers."""


class Fragmentation(Record):
    """
    Form of the cost of fragmentation.

    ``partial``: weight of the free GPUs of partly used domains, by level. Levels a cluster lacks count nothing.
    ``fgd``: GPUs that a worker of the target workload cannot use, expected (Weng et al., ATC'23).
    """

    form: Literal["partial", "fgd"] = "partial"
    """Definition of fragmentation: ``partial`` or ``fgd``."""
    level_weights: Annotated[dict[Id, Weight], AfterValidator(lambda weights: dict(sorted(weights.items())))] = {
        "node": 1,
        "rack": 1,
        "socket": 1,
    }
    """Level -> weight of the free GPUs of its partly used domains, for ``partial``."""
    target: Annotated[tuple[TargetWorker, ...], Field(max_length=1000)] = ()
    """The workload of ``fgd``; empty: the round's own jobs, running and waiting."""


class Changes(Record):
    """What may be done to running jobs, on top of what each of them allows, and its price in value."""

    moves_max: JobCount = 0
    """Largest number of running jobs that a round may move."""
    preemptions_max: JobCount = 0
    """Largest number of running jobs that a round may stop."""
    shrinks_max: JobCount = 0
    """Largest number of running jobs that a round may shrink."""
    move_price: Value = 0
    """Value subtracted for each move."""
    preemption_price: Value = 0
    """Value subtracted for each stopped job."""
    shrink_price_per_worker: Value = 0
    """Value subtracted for each removed worker."""
    run_time_min_ms: Milliseconds = 0
    """Time for which a job that started is not moved, shrunk or stopped."""
    wait_min_ms: Milliseconds = 0
    """With strict priorities: time that a job waits before running jobs are changed for it."""
    last_submitted_first: bool = False
    """Whether a running job may be shrunk or stopped only after those of its queue that arrived later (SODA V-D)."""


class Postpone(Record):
    """
    When a job rather waits than starts where it would run badly.

    ``utility``: it starts only where its utility reaches its minimum (SC'17, TOPO-AWARE-P). ``lookahead``: it waits
    where that lets it end earlier, by the expected ends of what runs.
    """

    rule: Literal["none", "utility", "lookahead"] = "none"
    """``none``, ``utility`` or ``lookahead``."""
    utility: Literal["sum", "sc17"] = "sc17"
    """SC'17 eq. 2 as best over actual, or the artifact's formula: see ``placeopt.terms.costs.utility``."""
    window_ms: Milliseconds = 600_000
    """How far ahead of now ``lookahead`` considers a start."""
    delays: Literal["value", "jobs"] = "value"
    """What a later end costs in schedules of ``lookahead``: the job's value per GPU, or the same for every job."""
    spread_slowdown_thousandths: Thousandths = 300
    """
    Excess run time of a job whose GPUs are as far apart as a machine allows, unless the job states its own (SC'17:
    pack against spread, 1.30 at batch 1 and 2).
    """


class Policy(Record):
    """A policy; the defaults are placeopt's own."""

    document: Annotated[Literal["policy"], Field(exclude=True)] = "policy"
    """What a file of it is; inside of another document it is left out."""
    name: Name = "placeopt"
    """Name of the policy."""
    share_mode: ShareMode = "fraction"
    """``exclusive``: one job a GPU; ``fraction``: shares sum to at most 1; ``overcommit``: they may exceed 1."""
    jobs_per_gpu_max: Annotated[int, Field(ge=1, le=1000)] | None = None
    """At most m jobs on a GPU. ``exclusive`` means 1; otherwise none is no limit (``overcommit`` must state one)."""
    usable: Usable = Usable()
    """Usable part of bandwidths."""
    weights: Weights = Weights()
    """Weights of the costs, by name."""
    interference: Interference = Interference()
    """Model of the slowdown by co-runners."""
    fragmentation: Fragmentation = Fragmentation()
    """Definition of fragmentation."""
    costs: CostParameters = CostParameters()
    """Parameters of costs that have their own, by name."""
    order: QueueOrder = "value_density"
    """The order in which greedy considers waiting jobs."""
    queues: Annotated[tuple[Queue, ...], Field(max_length=10_000)] = ()
    """Queues with quotas; empty: no quotas."""
    flavors: Annotated[tuple[Flavor, ...], Field(max_length=1000)] = ()
    """Kinds of nodes with quotas of their own. A node is of the first one whose conditions it meets."""
    priorities: Literal["price", "strict"] = "price"
    """
    What decides between jobs of different priority. ``price``: what they are worth, and what changes cost. ``strict``:
    the priority. Running jobs are moved, shrunk or stopped only for jobs of a higher one, whatever that costs, and no
    job starts in place of one of a higher priority.
    """
    changes: Changes = Changes()
    """Permitted changes of running jobs and their prices."""
    postpone: Postpone = Postpone()
    """Rule by which a job waits although it could start."""

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.share_mode == "overcommit" and self.jobs_per_gpu_max is None:
            raise ValueError("jobs_per_gpu_max: must be stated with share_mode 'overcommit'")
        if self.share_mode == "exclusive" and self.jobs_per_gpu_max not in (None, 1):
            raise ValueError(f"jobs_per_gpu_max: {self.jobs_per_gpu_max} with share_mode 'exclusive'; leave it out")
        if self.changes.wait_min_ms and self.priorities != "strict":
            raise ValueError(
                "changes.wait_min_ms: goes with priorities 'strict'; a price says not for whom a job stops"
            )
        if self.priorities == "strict" and self.postpone.rule == "lookahead":
            raise ValueError("priorities: 'strict' with postpone.rule 'lookahead'; which job goes first is one rule's")
        check_queues(self.queues, self.flavors)
        return self

    def queues_above(self, queue: str | None) -> tuple[str, ...]:
        """Return a queue and those above it, the lowest first; none of one that the policy does not list."""
        found: list[str] = []
        while queue is not None and queue in self._queues:
            found.append(queue)
            queue = self._queues[queue].parent
        return tuple(found)

    def flavors_of(self, queue: str | None) -> tuple[FlavorAllowance, ...]:
        """Return what a queue, or else the nearest one above it that names flavors, may hold of these."""
        return next((of for name in self.queues_above(queue) if (of := self._queues[name].flavors)), ())

    @cached_property
    def _queues(self) -> dict[str, Queue]:
        return {queue.id: queue for queue in self.queues}

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON form; what a plan states about the policy it was made by."""
        return hashlib.sha256(self.model_dump_json(exclude_defaults=True).encode()).hexdigest()
