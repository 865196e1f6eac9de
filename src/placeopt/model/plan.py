"""The plan: what a round decided, what it is worth, how good it is proven to be, and how it was found."""

from typing import Annotated, Literal

from pydantic import Field

from placeopt.model.base import Count, FormatVersion, Id, LongName, Name, Record, Revision
from placeopt.model.placement import Placement
from placeopt.model.policy import Policy

UnplacedReason = Literal["conflict", "outvoted", "postponed", "policy", "not_reached"]
PlanStatus = Literal["optimal", "feasible"]
PlanLimit = Literal["time", "work", "size", "memory", "user", "none"]
StageOutcome = Literal["improved", "kept", "proved", "skipped", "failed"]


class InstanceRef(Record):
    """Which instance the plan belongs to."""

    name: Name
    """Name of the instance."""
    digest: str | None
    """Of the instance's content; null in a plan for some jobs of a resident cluster, which names the revision alone."""
    revision: Revision
    """Revision of the instance."""


class PolicyRef(Record):
    """The policy that was used; ``check`` and ``explain`` judge by it."""

    name: Name
    """Name of the policy."""
    digest: str
    """SHA-256 of the policy's canonical JSON form."""
    values: Policy
    """The whole policy."""


class Level(Record):
    """One level of the objective. The bound is null where nothing is proven."""

    name: Literal["value", "cost"]
    """``value``: value of the placed jobs; ``cost``: weighted costs."""
    sense: Literal["max", "min"]
    """Whether the objective is maximised or minimised."""
    objective: int
    """Value of the plan at this level."""
    bound: int | None
    """
    Proven bound on the objective of any plan; of level ``cost``, of any plan that is worth at least as much as this
    one.
    """


class Cost(Record):
    """One term: its raw integer value, its weight W in the cost level, and the worst case it is measured against."""

    raw: int
    """Raw value of the term, in ``unit``."""
    weight: int
    """Factor of the raw value in the objective of the cost level."""
    worst: int
    """Constant that no raw value exceeds; it normalises the term."""
    unit: Name
    """Unit of the raw value."""


class Unplaced(Record):
    """A job that waits, and why."""

    job: Id
    """Name of the job."""
    reason: UnplacedReason
    """Class of the reason."""
    detail: str
    """The reason in words."""


class Moved(Record):
    """A running job that changes place: the nodes it leaves and those it goes to."""

    job: Id
    """Name of the job."""
    from_nodes: tuple[Id, ...] = Field(alias="from")
    """Nodes that the job leaves."""
    to_nodes: tuple[Id, ...] = Field(alias="to")
    """Nodes that the job goes to."""


class Shrunk(Record):
    """A running job that keeps ``workers`` of its workers."""

    job: Id
    """Name of the job."""
    workers: Count
    """Number of workers that it keeps."""


class Preempted(Record):
    """A running job that is stopped, and the GPU share that it frees: its requests; grants above were free before."""

    job: Id
    """Name of the job."""
    freed_gpu_milli: Annotated[int, Field(ge=0)]
    """GPU share that it requested, in thousandths of a GPU."""


class Standing(Record):
    """
    A limit that running jobs broke before the round, and still do: they stand, and the plan makes it no worse.

    ``job`` is null where several jobs break it together, ``node`` where it is not one node's.
    """

    job: Id | None
    """Name of the job."""
    rule: Name
    """Name of the exceeded limit."""
    node: Id | None
    """Name of the node."""
    detail: str
    """The limit in words."""


class Stage(Record):
    """One stage of the round: what came of it. ``seconds`` is null in deterministic mode."""

    name: Name
    """Name of the stage."""
    outcome: StageOutcome
    """What the stage achieved."""
    detail: str = ""
    """Reason or result in words."""
    objective: int | None = None
    """Best objective after the stage."""
    bound: int | None = None
    """Best bound after the stage."""
    seconds: float | None = None
    """Wall time of the stage."""


class Seconds(Record):
    """Wall time of the round's phases; null in deterministic mode, where the log has them."""

    read: float | None = None
    """Reading the instance."""
    compile: float | None = None
    """Compiling the problem."""
    solve: float | None = None
    """Running the stages."""
    check: float | None = None
    """Checking the plan."""
    total: float | None = None
    """The whole round."""


class Plan(Record):
    """
    The answer of a round. Every job of the instance stands exactly once: in ``placements`` or in ``unplaced``.

    A plan for some jobs (``asked``) has those jobs only. All others stay as they are, running or waiting; objective and
    bound are those of the jobs asked for, and costs are not stated.
    """

    document: Literal["plan"] = "plan"
    """What the file is."""
    format_version: FormatVersion = 2
    """Version of the file format."""
    instance: InstanceRef
    """The instance that the plan is for."""
    policy: PolicyRef
    """The policy that was used."""
    status: PlanStatus
    """``optimal``: the bound of every level equals its objective; ``feasible``: otherwise."""
    of: Literal["cluster", "reading"] = "cluster"
    """What status and bounds are true of: the cluster, or only what was read of it."""
    unread: tuple[LongName, ...] = ()
    """Of a reading: jobs and nodes that were not read and could change the answer."""
    limit: PlanLimit
    """Limit that ended the search; ``none`` in an optimal plan."""
    asked: tuple[Id, ...] | None = None
    """The waiting jobs that the plan is for; null: all jobs of the instance."""
    levels: Annotated[tuple[Level, ...], Field(min_length=1)]
    """Objective and bound of each level, most important first."""
    gap: float | None
    """|bound - objective| / max(1, |objective|) of the first level that is not proven; 0 when all are."""
    bound_relaxes: tuple[str, ...] = ()
    """Costs that the bound leaves out or underestimates."""
    costs: dict[str, Cost] = {}
    """Cost term -> its value and weight."""
    facts: dict[str, int] = {}
    """Counts about the plan, by name."""
    placements: tuple[Placement, ...] = ()
    """Placed jobs, running ones included."""
    unplaced: tuple[Unplaced, ...] = ()
    """Waiting jobs with the reason."""
    moved: tuple[Moved, ...] = ()
    """Running jobs that change place."""
    shrunk: tuple[Shrunk, ...] = ()
    """Running jobs that lose workers."""
    preempted: tuple[Preempted, ...] = ()
    """Running jobs that are stopped."""
    standing: tuple[Standing, ...] = ()
    """Limits that running jobs already exceeded before the round."""
    stages: tuple[Stage, ...] = ()
    """Stages of the search, in order."""
    seconds: Seconds = Seconds()
    """Wall time by phase."""
    seed: int = 0
    """Seed of the search."""
    versions: dict[str, str] = {}
    """Package -> version that made the plan."""

    def placement_of(self, job: str) -> Placement | None:
        """Return the placement of ``job``, or None if it waits."""
        return next((placement for placement in self.placements if placement.job == job), None)
