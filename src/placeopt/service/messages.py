"""What the calls of the service take and return; documents of the model stand in them as in files."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, RootModel

from placeopt.actions.action import Action
from placeopt.edits import AnyStep
from placeopt.live_cluster.engine import Engine
from placeopt.live_cluster.rebase import Committed
from placeopt.live_cluster.rebase import Refused as RefusedJob
from placeopt.model import Job, Placement, Plan, Running
from placeopt.model.base import Count, Id, Record, Revision
from placeopt.model.plan import Unplaced
from placeopt.service.steps import JobIds

LONGEST_ROUND_S = 3600.0
MOST_STEPS = 10_000
Seconds = Annotated[float, Field(gt=0, le=LONGEST_ROUND_S)]
ActionId = Annotated[str, Field(pattern=r"^\d{1,16}\.\d{1,9}$")]
RoundState = Literal["queued", "running", "done", "failed", "cancelled", "interrupted"]


class ExtenderBody(Record):
    """A body of kube-scheduler's extender protocol, version 1; its fields are read by ``service.extender``."""

    model_config = ConfigDict(extra="allow")


class ExtenderAnswer(RootModel[dict[str, Any]]):
    """An answer of the protocol: a result of filter, preempt or bind."""


class HostPriorities(RootModel[list[dict[str, Any]]]):
    """The answer of prioritize: nodes with their scores."""


OutcomeKind = Literal["done", "failed", "unknown"]
OUTCOMES: tuple[Literal["open"] | OutcomeKind, ...] = ("open", "done", "failed", "unknown")


class ClusterState(Record):
    """The cluster in numbers."""

    revision: Revision
    """Present revision."""
    waiting: Count
    """Jobs that wait."""
    running: Count
    """Jobs that run."""
    nodes: Count
    """Nodes."""
    ready: bool
    """Whether decisions are taken: with a host driver, once the host has said what runs."""


class Changes(Record):
    """Changes of the cluster; all of them, or none."""

    steps: Annotated[tuple[AnyStep, ...], Field(min_length=1, max_length=MOST_STEPS)]
    """Carried out in order."""
    revision: Revision | None = None
    """The revision that they are for; if the cluster has another one, they are refused. Null: any."""


class Changed(Record):
    """What changes came to."""

    revision: Revision
    """Revision after them."""
    waiting: tuple[Id, ...] = ()
    """Jobs that ran and wait again."""


class IssuedAction(Record):
    """An action that the service has returned to its caller, who carries it out."""

    id: ActionId
    """Its name: revision after the commit, and number within it."""
    action: Action
    """What to do; ``after`` counts the actions of the same commit from 0."""
    before: Running | None = None
    """Where the job ran before, of an action that moves, shrinks or stops it."""
    outcome: Literal["open", "done", "failed", "unknown"] = "open"
    """What the caller said came of it."""
    detail: str | None = None
    """The caller's words."""


class StartFlags(Record):
    """What may be done later to jobs that start."""

    movable: JobIds = False
    """All (true), none, or the ids of those that may be moved."""
    shrinkable: JobIds = False
    """Those that may lose workers."""
    preemptible: JobIds = False
    """Those that may be stopped."""

    def commit_to(self, engine: Engine, plan: Plan, *, rebase: bool = False) -> Committed:
        """Commit a plan under these flags."""
        return engine.commit(
            plan, movable=self.movable, shrinkable=self.shrinkable, preemptible=self.preemptible, rebase=rebase
        )

    def flags(self) -> dict[str, JobIds]:
        """Return the arguments of ``Engine.commit``."""
        return {"movable": self.movable, "shrinkable": self.shrinkable, "preemptible": self.preemptible}


class Decide(StartFlags):
    """Places for some jobs, at once, one after the other; all others stay."""

    jobs: tuple[Id, ...] = ()
    """Waiting jobs."""
    add_jobs: tuple[Job, ...] = ()
    """Jobs that come with this call, placed after ``jobs``; those without a place wait."""
    method: str = "stranding"
    """A method of greedy."""
    commit: bool = True
    """Whether the jobs run from now on; otherwise nothing changes, and ``add_jobs`` has to be empty."""
    explain: bool = True
    """Whether the reply says why a job has no place."""


class Decided(Record):
    """Decisions for some jobs."""

    revision: Revision
    """Revision after them."""
    placements: tuple[Placement, ...] = ()
    """Jobs with a place."""
    unplaced: tuple[Unplaced, ...] = ()
    """Jobs without."""
    actions: tuple[IssuedAction, ...] = ()
    """What to do, where the decisions were committed."""


class StartRound(StartFlags):
    """A whole round over the present cluster, solved beside other calls."""

    time_limit_s: Seconds = 10.0
    """Seconds of the round."""
    method: str = "auto"
    """Any method."""
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0
    """Seed of the round."""
    deterministic: bool = False
    """Whether the plan depends on the arguments alone."""
    commit: bool = False
    """Whether the plan is committed when it is there, as far as it still holds."""


class RoundProgress(Record):
    """News from a round."""

    seconds: float
    """Since its start."""
    stage: str
    """The stage at work."""
    value: int | None = None
    """Value placed."""
    value_bound: int | None = None
    """Its bound."""
    gap: float | None = None
    """Relative gap of the first level that is not proven."""


class CommitResult(Record):
    """What a commit came to."""

    revision: Revision
    """Revision after it."""
    committed: tuple[Id, ...] = ()
    """Jobs that were started, moved, shrunk or stopped."""
    refused: tuple[RefusedJob, ...] = ()
    """Jobs for which the plan no longer holds, and why."""
    actions: tuple[IssuedAction, ...] = ()
    """What to do."""


class RoundStatus(Record):
    """A round and how far it is."""

    id: Id
    """Its name."""
    state: RoundState
    """``done``: there is a plan. ``cancelled``: with the best plan so far, if there was one. ``interrupted``: the
    service ended in the middle of it; nothing of it was committed that events do not tell."""
    revision: Revision
    """The revision that it plans for."""
    time_limit_s: float
    """Seconds that it may take."""
    progress: RoundProgress | None = None
    """The last news."""
    gap: float | None = None
    """Of the plan."""
    seconds: float | None = None
    """From start to plan."""
    plan: Plan | None = None
    """The plan; not in lists of rounds."""
    commit: CommitResult | None = None
    """What its last commit came to, if there was one."""
    fired: dict[str, int] = Field(default_factory=dict)
    """Under a scheduling policy: mechanism -> how often it acted."""
    detail: str | None = None
    """Why it failed, or why its commit was refused."""


class RoundList(Record):
    """Rounds, the latest first, without their plans."""

    rounds: tuple[RoundStatus, ...] = ()
    """The latest hundred."""


class CommitRequest(StartFlags):
    """A plan to carry out."""

    plan: Plan | None = None
    """The plan; or"""
    round: Id | None = None
    """the round that has it."""
    rebase: bool = False
    """Whether what still holds of a plan of an earlier revision goes in, and the rest is named."""


class Outcome(Record):
    """What came of an action on the host."""

    action: ActionId
    """Its name."""
    result: OutcomeKind
    """A job whose start failed waits again; one whose move, shrink or stop failed is taken to run where it ran, and
    open actions that need its room have failed, too."""
    detail: Annotated[str, Field(max_length=2000)] | None = None
    """The host's words."""


class Outcomes(Record):
    """What came of some actions; all are taken, or none."""

    outcomes: Annotated[tuple[Outcome, ...], Field(min_length=1, max_length=MOST_STEPS)]
    """One each."""


class ActionList(Record):
    """Actions."""

    actions: tuple[IssuedAction, ...] = ()
    """In the order in which they were returned."""


class Event(Record):
    """A change of the cluster, in words."""

    number: Count
    """Events are numbered from 1 on, also over restarts."""
    revision: Revision
    """Revision after it."""
    words: str
    """What happened."""


class EventList(Record):
    """Events after a number."""

    events: tuple[Event, ...] = ()
    """The oldest first; at most a thousand."""
    last: Count
    """Number of the last event that there is."""
    missed: bool = False
    """Whether older ones are no longer kept; read the snapshot again."""


class Question(Record):
    """A question to ``whatif``; each verb takes some of the fields."""

    job: str | None = None
    """``fit``: a job as ``4x8xH100``, or the id of one."""
    node_type: str | None = None
    """``add``: a machine type, or the id of a node to copy."""
    level: str | None = None
    """``fail``, ``defrag``: ``node`` or a level of the network."""
    k: Annotated[int, Field(ge=1, le=3)] | None = None
    """``fail``: how many fail at once."""
    time_limit_s: Seconds = 10.0
    """Seconds for the whole answer; it says what was not reached by then."""


class Answer(Record):
    """An answer of ``whatif`` or ``explain``, for the revision that it was asked of."""

    revision: Revision
    """The revision."""
    answer: dict[str, Any]
    """Fields as in the command's ``--json``."""
