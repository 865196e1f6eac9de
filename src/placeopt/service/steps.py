"""
What changes a cluster, as records that the journal keeps and a restart carries out again.

These are the steps of `placeopt.edits`, which clients send, and commits. Each is one call of an engine, so one
revision, or none if it changes nothing. A commit is kept as what it came to: the placements that were carried out, and
not the request that led to them, so that replay decides nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from placeopt.edits import AnyStep, Step
from placeopt.errors import BadInput, InternalFault
from placeopt.live_cluster.engine import Engine
from placeopt.live_cluster.rebase import Committed
from placeopt.model import Placement, Plan, Policy
from placeopt.model.base import Id, Record
from placeopt.model.plan import InstanceRef, Level, Moved, PolicyRef, Preempted, Shrunk

MOST_JOBS_TOLD, MOST_STEPS_TOLD = 5, 3
JobIds = bool | tuple[Id, ...]
"""All jobs that start (true), none, or some by id."""


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

    def carry_out(self, engine: Engine, name: str, policy: Policy) -> None:
        """Do again what was done. ``name``, ``policy``: of the loaded cluster."""
        flags = {"movable": self.movable, "shrinkable": self.shrinkable, "preemptible": self.preemptible}
        done = engine.commit(self.plan(engine.revision, name, policy), rebase=True, **flags)
        if done.refused:
            raise BadInput(f"job {done.refused[0].job!r}: {done.refused[0].why}")

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

    @property
    def words(self) -> str:
        """What the step does, for people."""
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


Kept = Annotated[AnyStep | Commit, Field(discriminator="do")]
"""A step of the journal."""
_STEPS: TypeAdapter[tuple[Kept, ...]] = TypeAdapter(tuple[Kept, ...])


def words_of(steps: Sequence[Step | Commit]) -> str:
    """Return what steps do, for people: the first ones of many, since events are kept by the thousand."""
    return "; ".join(step.words for step in steps[:MOST_STEPS_TOLD]) + "; ..." * (len(steps) > MOST_STEPS_TOLD)


def write_steps(steps: Sequence[Step | Commit]) -> str:
    """Return steps as JSON on one line."""
    return f"[{','.join(step.model_dump_json(exclude_defaults=True, by_alias=True) for step in steps)}]"


def read_steps(text: str) -> tuple[Kept, ...]:
    """Return the steps that `write_steps` wrote."""
    return _STEPS.validate_json(text)


def _told(words: str, ids: Collection[str]) -> str:
    """Return words about some ids, the first ones in full; empty without any."""
    if not ids:
        return ""
    shown = ", ".join(repr(name) for name in list(ids)[:MOST_JOBS_TOLD])
    more = f" and {len(ids) - MOST_JOBS_TOLD} more" if len(ids) > MOST_JOBS_TOLD else ""
    return words.format(f"job{'s' * (len(ids) > 1)} {shown}{more}")
