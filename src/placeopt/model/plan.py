"""The plan: what a round decided, what it is worth, how good it is proven to be, and how it was found."""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from placeopt.model.base import Count, FormatVersion, Id, Name, Record, Revision
from placeopt.model.placement import Placement
from placeopt.model.policy import Policy

UnplacedReason = Literal["conflict", "outvoted", "postponed", "policy", "not_reached"]
PlanStatus = Literal["optimal", "feasible"]
PlanLimit = Literal["time", "work", "size", "memory", "user", "none"]
StageOutcome = Literal["improved", "kept", "proved", "skipped", "failed"]


class InstanceRef(Record):
    """Which instance the plan belongs to."""

    name: Name
    digest: str | None
    """Of the instance's content; null in a plan for some jobs of a resident cluster, which names the revision alone."""
    revision: Revision


class PolicyRef(Record):
    """The policy that was used; ``check`` and ``explain`` judge by it."""

    name: Name
    digest: str
    values: Policy


class Level(Record):
    """One level of the objective. The bound is null where nothing is proven."""

    name: Literal["value", "cost"]
    sense: Literal["max", "min"]
    objective: int
    bound: int | None


class Cost(Record):
    """One term: its raw integer value, its weight W in the cost level, and the worst case it is measured against."""

    raw: int
    weight: int
    worst: int
    unit: Name


class Unplaced(Record):
    """A job that waits, and why."""

    job: Id
    reason: UnplacedReason
    detail: str


class Moved(Record):
    """A running job that changes place: the nodes it leaves and those it goes to."""

    job: Id
    from_nodes: tuple[Id, ...] = Field(alias="from")
    to_nodes: tuple[Id, ...] = Field(alias="to")


class Shrunk(Record):
    """A running job that keeps ``workers`` of its workers."""

    job: Id
    workers: Count


class Preempted(Record):
    """A running job that is stopped, and the GPU share that it frees: its requests; grants above were free before."""

    job: Id
    freed_gpu_milli: Annotated[int, Field(ge=0)]


class Standing(Record):
    """
    A limit that running jobs broke before the round, and still do: they stand, and the plan makes it no worse.

    ``job`` is null where several jobs break it together, ``node`` where it is not one node's.
    """

    job: Id | None
    rule: Name
    node: Id | None
    detail: str


class Stage(Record):
    """One stage of the round: what came of it. ``seconds`` is null in deterministic mode."""

    name: Name
    outcome: StageOutcome
    detail: str = ""
    objective: int | None = None
    bound: int | None = None
    seconds: float | None = None


class Seconds(Record):
    """Wall time of the round's phases; null in deterministic mode, where the log has them."""

    read: float | None = None
    compile: float | None = None
    solve: float | None = None
    check: float | None = None
    total: float | None = None


class Plan(Record):
    """
    The answer of a round. Every job of the instance stands exactly once: in ``placements`` or in ``unplaced``.

    A plan for some jobs (``asked``) has those jobs only. All others stay as they are, running or waiting; objective and
    bound are those of the jobs asked for, and costs are not stated.
    """

    ADDED: ClassVar[frozenset[str]] = frozenset({"asked", "standing"})
    """Fields that came to version 1 later: written only where they say something, so older files keep their bytes."""

    format_version: FormatVersion = 1
    instance: InstanceRef
    policy: PolicyRef
    status: PlanStatus
    limit: PlanLimit
    asked: tuple[Id, ...] | None = None
    """The waiting jobs that the plan is for; null: all jobs of the instance."""
    levels: Annotated[tuple[Level, ...], Field(min_length=1)]
    gap: float | None
    """|bound - objective| / max(1, |objective|) of the first level that is not proven; 0 when all are."""
    bound_relaxes: tuple[str, ...] = ()
    costs: dict[str, Cost] = {}
    facts: dict[str, int] = {}
    placements: tuple[Placement, ...] = ()
    unplaced: tuple[Unplaced, ...] = ()
    moved: tuple[Moved, ...] = ()
    shrunk: tuple[Shrunk, ...] = ()
    preempted: tuple[Preempted, ...] = ()
    standing: tuple[Standing, ...] = ()
    stages: tuple[Stage, ...] = ()
    seconds: Seconds = Seconds()
    seed: int = 0
    versions: dict[str, str] = {}

    def placement_of(self, job: str) -> Placement | None:
        """Return the placement of ``job``, or None if it waits."""
        return next((placement for placement in self.placements if placement.job == job), None)
