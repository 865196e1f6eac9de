"""What an explanation of one job is made of: constraints, rivals, remedies and places."""

from __future__ import annotations

from pydantic import Field

from placeopt.edits import AnyStep
from placeopt.model.base import Id, Name, Record


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
    """One change of the cluster, of a queue or of a rule of the job, in words and as steps."""

    change: str
    group: str | None
    """The only group of constraints that it loosens; None where it adds hardware."""
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

    @property
    def workers(self) -> str:
        """The nodes, and how many workers are on each, in words."""
        return ", ".join(node if count == 1 else f"{node} x {count}" for node, count in self.nodes.items())


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
