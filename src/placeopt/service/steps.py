"""
Steps: what changes a cluster, as records. Clients send them, the journal keeps them, a restart carries them out again.

Each step is one call of an engine, so one revision, or none if it changes nothing. A commit is kept as what it came to:
the placements that were carried out, and not the request that led to them, so that replay decides nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from placeopt.errors import BadInput, InternalFault
from placeopt.live_cluster.engine import Engine
from placeopt.live_cluster.rebase import Committed
from placeopt.model import Domain, Job, Machine, Node, Placement, Plan, Policy
from placeopt.model.base import Id, Milliseconds, Record
from placeopt.model.job import MAX_PRIORITY
from placeopt.model.plan import InstanceRef, Level, Moved, PolicyRef, Preempted, Shrunk

MOST_JOBS_TOLD, MOST_STEPS_TOLD = 5, 3
JobIds = bool | tuple[Id, ...]
"""All jobs that start (true), none, or some by id."""
Flag = Literal["movable", "shrinkable", "preemptible"]
Flags = dict[Flag, bool]


class Update(Record):
    """Jobs, nodes, hardware and times that come, go and change; the fields are those of ``Engine.update``."""

    do: Literal["update"]
    """Kind of step."""
    add_jobs: tuple[Job, ...] = ()
    """Waiting jobs that come."""
    remove_jobs: tuple[Id, ...] = ()
    """Waiting jobs that go."""
    nodes: dict[Id, Node | Literal["drain", "undrain"] | None] = Field(default_factory=dict)
    """Records of nodes that come or change; a word; or null, which removes the node."""
    now_ms: Milliseconds | None = None
    """Time on the clock of the cluster."""
    expected_end_ms: dict[Id, Milliseconds] = Field(default_factory=dict)
    """Running job -> when it is expected to end."""
    flags: dict[Id, Flags] = Field(default_factory=dict)
    """Running job -> what may be done to it."""
    priority: dict[Id, Annotated[int, Field(ge=-MAX_PRIORITY, le=MAX_PRIORITY)]] = Field(default_factory=dict)
    """Waiting job -> its priority."""
    machines: tuple[Machine, ...] = ()
    """Machine types that come."""
    domains: tuple[Domain, ...] = ()
    """Domains that come."""

    def carry_out(self, engine: Engine, name: str, policy: Policy) -> tuple[str, ...]:
        """Change the cluster; return the jobs that wait again."""
        del name, policy
        engine.update(
            add_jobs=self.add_jobs,
            remove_jobs=self.remove_jobs,
            nodes=self.nodes,
            now_ms=self.now_ms,
            expected_end_ms=self.expected_end_ms,
            flags={job: {str(flag): may for flag, may in flags.items()} for job, flags in self.flags.items()},
            priority=self.priority,
            machines=self.machines,
            domains=self.domains,
        )
        return ()

    def words(self) -> str:
        """Return what the step does, for people."""
        told = [
            _told("{} came", [job.id for job in self.add_jobs]),
            _told("{} went", self.remove_jobs),
            _told("{} changed", self.nodes, "node"),
            _told("{} expected to end at another time", self.expected_end_ms),
            _told("flags of {} changed", self.flags),
            _told("priority of {} changed", self.priority),
            _told("{} came", [machine.id for machine in self.machines], "machine type"),
            _told("{} came", [domain.id for domain in self.domains], "domain"),
        ]
        return " and ".join(filter(None, told)) or "time went on"


class Release(Record):
    """A running job ended; its record goes."""

    do: Literal["release"]
    """Kind of step."""
    job: Id
    """Name of the job."""

    def carry_out(self, engine: Engine, name: str, policy: Policy) -> tuple[str, ...]:
        """Remove the job; return the jobs that wait again."""
        del name, policy
        engine.release(self.job)
        return ()

    def words(self) -> str:
        """Return what the step does, for people."""
        return f"job {self.job!r} ended"


class Undo(Record):
    """A running job waits again: its start failed, or the host stopped it."""

    do: Literal["undo"]
    """Kind of step."""
    job: Id
    """Name of the job."""

    def carry_out(self, engine: Engine, name: str, policy: Policy) -> tuple[str, ...]:
        """Let the job wait; return the jobs that wait again."""
        del name, policy
        engine.undo(self.job)
        return (self.job,)

    def words(self) -> str:
        """Return what the step does, for people."""
        return f"job {self.job!r} waits again"


class FailNode(Record):
    """A node failed; what ran there waits again, whole gangs with all their workers."""

    do: Literal["fail_node"]
    """Kind of step."""
    node: Id
    """Name of the node."""
    remove: bool = False
    """Whether the node is removed; otherwise it stays, drained."""

    def carry_out(self, engine: Engine, name: str, policy: Policy) -> tuple[str, ...]:
        """Take the node out of use; return the jobs that wait again."""
        del name, policy
        return tuple(job.id for job in engine.fail_node(self.node, remove=self.remove))

    def words(self) -> str:
        """Return what the step does, for people."""
        return f"node {self.node!r} failed" + " and went" * self.remove


class Adopt(Record):
    """A job that another system started runs where it is."""

    do: Literal["adopt"]
    """Kind of step."""
    placement: Placement
    """Where it runs, in which option."""
    job: Job | None = None
    """Its record, if it does not wait here."""
    started_ms: Milliseconds | None = None
    """When it started; null: now."""
    expected_end_ms: Milliseconds | None = None
    """When it is expected to end."""
    movable: bool = False
    """Whether it may be moved."""
    shrinkable: bool = False
    """Whether it may lose workers."""
    preemptible: bool = False
    """Whether it may be stopped."""

    def carry_out(self, engine: Engine, name: str, policy: Policy) -> tuple[str, ...]:
        """Count the job as running; return the jobs that wait again."""
        del name, policy
        engine.adopt(
            self.placement,
            job=self.job,
            started_ms=self.started_ms,
            expected_end_ms=self.expected_end_ms,
            movable=self.movable,
            shrinkable=self.shrinkable,
            preemptible=self.preemptible,
        )
        return ()

    def words(self) -> str:
        """Return what the step does, for people."""
        return f"job {self.placement.job!r} started elsewhere"


class SetPolicy(Record):
    """Another policy holds from now on."""

    do: Literal["set_policy"]
    """Kind of step."""
    policy: Policy
    """The policy."""

    def carry_out(self, engine: Engine, name: str, policy: Policy) -> tuple[str, ...]:
        """Go on under the policy; return the jobs that wait again."""
        del name, policy
        engine.set_policy(self.policy)
        return ()

    def words(self) -> str:
        """Return what the step does, for people."""
        return f"policy {self.policy.name!r} holds"


class Commit(Record):
    """What a plan came to when it was committed."""

    do: Literal["commit"]
    """Kind of step."""
    starts: tuple[Placement, ...] = ()
    """Jobs that started, in order."""
    changed: tuple[Placement, ...] = ()
    """Where jobs run that were moved or shrunk."""
    moved: tuple[Moved, ...] = ()
    """Jobs that were moved."""
    shrunk: tuple[Shrunk, ...] = ()
    """Jobs that lost workers."""
    preempted: tuple[Preempted, ...] = ()
    """Jobs that were stopped."""
    movable: JobIds = False
    """Which jobs that started may be moved later."""
    shrinkable: JobIds = False
    """Which of them may lose workers."""
    preemptible: JobIds = False
    """Which of them may be stopped."""

    def carry_out(self, engine: Engine, name: str, policy: Policy) -> tuple[str, ...]:
        """Do again what was done; return the jobs that wait again. ``name``, ``policy``: of the loaded cluster."""
        flags = {"movable": self.movable, "shrinkable": self.shrinkable, "preemptible": self.preemptible}
        done = engine.commit(self.plan(engine.revision, name, policy), rebase=True, **flags)
        if done.refused:
            raise BadInput(f"job {done.refused[0].job!r}: {done.refused[0].why}")
        return tuple(entry.job for entry in self.preempted)

    def plan(self, revision: int, name: str, policy: Policy) -> Plan:
        """Return a plan that does this, to be carried out as far as it goes (``rebase``)."""
        return Plan(
            instance=InstanceRef(name=name, digest=None, revision=revision),
            policy=PolicyRef(name=policy.name, digest=policy.digest, values=policy),
            status="feasible",
            limit="none",
            levels=(Level(name="value", sense="max", objective=0, bound=None),),
            gap=None,
            placements=(*self.changed, *self.starts),
            moved=self.moved,
            shrunk=self.shrunk,
            preempted=self.preempted,
        )

    def words(self) -> str:
        """Return what the step does, for people."""
        told = [
            _told("{} started", [placement.job for placement in self.starts]),
            _told("{} moved", [entry.job for entry in self.moved]),
            _told("{} shrank", [entry.job for entry in self.shrunk]),
            _told("{} stopped", [entry.job for entry in self.preempted]),
        ]
        return " and ".join(filter(None, told)) or "nothing changed"


def commit_of(engine: Engine, plan: Plan, done: Committed, flags: Mapping[str, JobIds]) -> Commit:
    """Return the step that does again what the commit of ``plan`` has just done; ``flags``: its other arguments."""
    committed = dict.fromkeys(done.committed)
    moved = tuple(entry for entry in plan.moved if entry.job in committed)
    shrunk = tuple(entry for entry in plan.shrunk if entry.job in committed)
    preempted = tuple(entry for entry in plan.preempted if entry.job in committed)
    changed = [*(entry.job for entry in moved), *(entry.job for entry in shrunk)]
    other = {*changed, *(entry.job for entry in preempted)}
    return Commit(
        do="commit",
        starts=tuple(_placement(engine, job) for job in committed if job not in other),
        changed=tuple(_placement(engine, job) for job in changed),
        moved=moved,
        shrunk=shrunk,
        preempted=preempted,
        **{name: value if isinstance(value, bool) else tuple(value) for name, value in flags.items()},
    )


def _placement(engine: Engine, job: str) -> Placement:
    """Return where a job runs now."""
    running = engine.job(job)[1]
    if running is None:
        raise InternalFault(f"job {job!r} was committed and does not run")
    return Placement(job=job, option=running.option, assignments=running.assignments)


ClientStep = Annotated[
    Update | Release | Undo | FailNode | Adopt | SetPolicy,
    Field(discriminator="do"),
]
"""A step that clients may send."""
Step = Annotated[Update | Release | Undo | FailNode | Adopt | SetPolicy | Commit, Field(discriminator="do")]
"""A step of the journal."""
_STEPS: TypeAdapter[tuple[Step, ...]] = TypeAdapter(tuple[Step, ...])


def words_of(steps: Sequence[Step]) -> str:
    """Return what steps do, for people: the first ones of many, since events are kept by the thousand."""
    return "; ".join(step.words() for step in steps[:MOST_STEPS_TOLD]) + "; ..." * (len(steps) > MOST_STEPS_TOLD)


def write_steps(steps: Sequence[Step]) -> str:
    """Return steps as JSON on one line."""
    return f"[{','.join(step.model_dump_json(exclude_defaults=True, by_alias=True) for step in steps)}]"


def read_steps(text: str) -> tuple[Step, ...]:
    """Return the steps that `write_steps` wrote."""
    return _STEPS.validate_json(text)


def _told(words: str, ids: Collection[str], what: str = "job") -> str:
    """Return words about some ids, the first ones in full; empty without any."""
    if not ids:
        return ""
    shown = ", ".join(repr(name) for name in list(ids)[:MOST_JOBS_TOLD])
    more = f" and {len(ids) - MOST_JOBS_TOLD} more" if len(ids) > MOST_JOBS_TOLD else ""
    return words.format(f"{what}{'s' * (len(ids) > 1)} {shown}{more}")
