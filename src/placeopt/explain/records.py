"""The explanation of one job, as records: what ``explain`` returns, and what becomes JSON and text."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from placeopt.edits import AnyStep, Of
from placeopt.model.base import Id, LongName, Name, Record, Uncertified
from placeopt.model.plan import UnplacedReason


class Constraint(Record):
    """One group of constraints: ``gpu_count``, ``gang``, ``split:rack``, ...; its name for people; what it asks."""

    group: str
    name: str
    asks: str


class Rival(Record):
    """A job that holds room, and what it is worth there."""

    job: Id
    value: int
    running: bool = False


class Outvoted(Record):
    """
    The jobs of the plan, cheapest together, without which the job fits; with fewer of them gone it does not.

    They are jobs that started in the round. Only where those alone do not hold its room, running ones are among them
    that policy and job let be changed. ``value`` is theirs together, ``job_value`` what the job would be worth.
    """

    jobs: tuple[Rival, ...]
    value: int
    job_value: int
    proven: bool


class WorkersMax(Record):
    """The most workers that fit, where ``asked`` is the fewest that the option allows."""

    option: Id
    workers: int
    asked: int


class DomainsMin(Record):
    """The fewest domains of ``level`` over which the job fits; it asks for exactly ``asked``."""

    option: Id
    level: Id
    domains: int
    asked: int


class GpuName(Record):
    """A GPU, by node and index."""

    node: Id
    gpu: int


class BestPlace(Record):
    """
    The best place that there is room for, by minimal utilities: one of the highest utility that leaves others theirs.

    ``utility`` and ``asks``, what the job's minimum is, in thousandths. ``falls_short``: jobs that start in the round
    and would fall below their own minimum there.
    """

    utility: int
    asks: int
    option: Id
    nodes: tuple[Id, ...]
    gpus: tuple[GpuName, ...]
    falls_short: tuple[Id, ...] = ()


class Preempt(Record):
    """
    The cheapest preemptible running jobs without which the job fits, by value and the policy's price.

    ``allowed``: whether the policy lets a round preempt so many.
    """

    option: Id
    jobs: tuple[Rival, ...]
    price: int
    allowed: bool
    proven: bool


class SingleChange(Record):
    """One change of the cluster, of a queue or of a rule of the job, after which the job fits."""

    change: str
    steps: tuple[AnyStep, ...]
    """The change as a patch has it."""


class Remedies(Record):
    """
    What would do, each by itself and the least of its kind.

    ``said`` is a remedy in a sentence, for every one that there is; ``none`` says why a remedy is null. ``steps`` is a
    remedy as a patch of the round after the plan; of ``domains_min`` one for each level, as ``domains_min:rack``.
    """

    workers_max: WorkersMax | None = None
    domains_min: tuple[DomainsMin, ...] = ()
    level: Id | None = None
    """The first of node, the network's levels and ``cluster`` of which one domain takes all workers."""
    preempt: Preempt | None = None
    changes: tuple[SingleChange, ...] = ()
    """Single changes, each of which was tried."""
    steps: dict[str, tuple[AnyStep, ...]] = Field(default_factory=dict)
    said: dict[str, str] = Field(default_factory=dict)
    none: dict[str, str] = Field(default_factory=dict)


class TermShare(Record):
    """What the job adds to a term: the term would fall by ``raw`` if it left, the cost level by ``cost``."""

    term: Name
    raw: int
    unit: Name
    cost: int


class JobPosition(Record):
    """Somewhere that the job stands, or could: option, workers by node, value, and what it adds to the cost level."""

    option: Id
    nodes: dict[Id, int]
    value: int
    cost: int
    terms: tuple[TermShare, ...] = ()


class Alternative(Record):
    """
    The best place for a placed job while all others stay where they are.

    ``spot`` is null if there is none. ``gain_value`` and ``gain_cost`` are what the plan would gain: value more and
    cost less. ``proven``: that none is better.
    """

    spot: JobPosition | None
    gain_value: int = 0
    gain_cost: int = 0
    proven: bool
    detail: str = ""


class WaitingReason(Record):
    """
    Waiting jobs with one reason and one conflict.

    ``gpu_milli``: GPU share that they ask for together, each in its smallest option.
    """

    reason: UnplacedReason
    constraints: tuple[str, ...] = ()
    detail: str
    jobs: int
    gpu_milli: int
    examples: tuple[Id, ...]


class Freed(Record):
    """
    What one change would let start: jobs that fit each by itself, and how many greedy starts together, at least.

    ``gpu_milli``: GPU share of those that start together, each in its smallest option.
    """

    change: str
    steps: tuple[AnyStep, ...] = ()
    """The change as a patch has it."""
    jobs_alone: int
    jobs_together: int
    gpu_milli: int


class Said(Uncertified):
    """What an explanation is true of."""

    of: Of = "cluster"
    """Whether it is true of the cluster, whatever was not read, or only of what was read."""
    unread: tuple[LongName, ...] = ()
    """Of a reading: jobs and nodes that were not read and could change it."""


class QueueExplanation(Said):
    """
    Why the jobs of a queue wait, most frequent reason first, and the changes that would free jobs, the best first.

    ``kinds``: distinct requests among the ``waiting`` jobs. ``proven``: whether all were answered in time.
    """

    waiting: int
    kinds: int
    reasons: tuple[WaitingReason, ...]
    changes: tuple[Freed, ...]
    proven: bool
    seconds: float


class Explanation(Said):
    """
    Why a job waits and what would help, or what its place costs and which other one is best.

    ``beside``: whether conflict and remedies hold beside the running jobs that must stay, or beside the plan.
    ``proven``: that every answer in it is proven; what could not be finished in time says so.
    """

    job: Id
    status: Literal["waiting", "placed"]
    reason: UnplacedReason | None = None
    detail: str
    plan_reason: UnplacedReason | None = None
    """What the plan says."""
    beside: Literal["running", "plan"] = "plan"
    conflict: tuple[Constraint, ...] = ()
    outvoted_by: Outvoted | None = None
    best_place: BestPlace | None = None
    """Of a job that has room, but nowhere at its minimal utility."""
    remedies: Remedies = Remedies()
    spot: JobPosition | None = None
    best: Alternative | None = None
    """The best of all places, the present one included."""
    elsewhere: Alternative | None = None
    """The best place with at least one worker on a node where it has none now."""
    proven: bool
    seconds: float
