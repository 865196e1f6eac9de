"""What changed between two states of one cluster, in terms of the calls that bring an engine from one to the other."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import Field, ValidationError

from placeopt.arguments import checked
from placeopt.documents.faults import validation_fault
from placeopt.model import Hold, Instance, Job, Node, ReadingNote, Running
from placeopt.model.base import Id, Milliseconds, Record
from placeopt.model.job import MAX_PRIORITY

_id, _job = attrgetter("id"), attrgetter("job")
R = TypeVar("R", bound=Record)
Flag = Literal["movable", "shrinkable", "preemptible"]
FLAGS: tuple[Flag, ...] = get_args(Flag)
"""What may be done to a running job."""
UNSTATED = ("started_ms", "expected_end_ms", *FLAGS)
"""Of a running job: what does not decide whether it runs on as it did."""


class ClusterChanges(Record):
    """
    Differences of two instances, in the order in which an engine takes them; ``Engine.apply`` carries them out.

    Raises ``BadInput`` for a field of another kind.
    """

    reload: tuple[str, ...] = ()
    """Why the engine must load the later instance as a whole; empty: the other fields say all."""
    release: tuple[Id, ...] = ()
    """Jobs that ran and no longer run as they did: they ended, wait again, run elsewhere, or have another record."""
    remove_jobs: tuple[Id, ...] = ()
    """Jobs that waited, and are gone, started or have another record."""
    nodes: dict[Id, Node | None] = Field(default_factory=dict)
    """Nodes that came or changed; None: it went."""
    add_jobs: tuple[Job, ...] = ()
    """Records of jobs that are new, or changed; those that run are among them."""
    adopt: tuple[Running, ...] = ()
    """What runs that did not, each with the resources that it holds."""
    holds: tuple[Hold, ...] | None = None
    """All room that is held without a job; None: as before."""
    reading: tuple[ReadingNote, ...] | None = None
    """All notes of the reading; None: as before."""
    priorities: dict[Id, Annotated[int, Field(ge=-MAX_PRIORITY, le=MAX_PRIORITY)]] = Field(default_factory=dict)
    """Of jobs that changed in these alone, as the next two."""
    expected_end_ms: dict[Id, Milliseconds] = Field(default_factory=dict)
    flags: dict[Id, dict[Flag, bool]] = Field(default_factory=dict)
    now_ms: Milliseconds = 0
    """Time of the later instance."""

    def __init__(self, **fields: Any) -> None:
        try:
            super().__init__(**fields)
        except ValidationError as error:
            raise validation_fault(type(self), error, "changes") from None

    def __bool__(self) -> bool:
        """Whether anything but the time changed."""
        return self != ClusterChanges(now_ms=self.now_ms)


@checked
def changes_between(before: Instance, after: Instance, *, flags: bool = False) -> ClusterChanges:
    """
    Return what changed between two instances of one cluster.

    Parameters
    ----------
    before
        An earlier reading of the cluster, or an engine's ``snapshot``.
    after
        A later reading. Jobs, nodes, machine types and domains are the same where their ids are.
    flags
        Whether it is compared if a job that runs on may be moved, shrunk or preempted; otherwise that stays as
        ``before`` states.

    Returns
    -------
    ClusterChanges
        A job runs on as it did if its option, and what it holds on each node, are the same. When it started is not
        compared: it stays as ``before`` states. Nodes, jobs and what runs are in the order of ``after``. The policy,
        revision, name and note are not compared; prices stay where ``after`` states none (`keep_prices`). GPUs that
        failed before (`Instance.failed_gpus`) remain so, unless a job begins to run on them.
    """
    after = keep_prices(before, after)
    ran, runs = _by(_job, before.running), _by(_job, after.running)
    had, have = _by(_id, before.jobs), _by(_id, after.jobs)
    again = [job for job, record in have.items() if job in had and record is not had[job]]
    changed = {job for job in again if not _agree(had[job], have[job], ("priority",))}
    on = {
        job
        for job, record in runs.items()
        if job in ran and job not in changed and (record is ran[job] or _agree(record, ran[job], UNSTATED))
    }
    anew = {job for job in have if job not in had} | changed
    anew |= {
        job for job in have if job not in anew and ((job in ran) != (job in runs) or (job in runs and job not in on))
    }
    nodes = changed_nodes(before, after)
    adopt = tuple(record for job, record in runs.items() if job not in on)
    gone = {node for node, record in nodes.items() if record is None}
    kept = [runs[job] for job in on] if gone else []
    return ClusterChanges(
        reload=(*_reload(before, after), *_unlisted(after, adopt, kept, gone)),
        release=tuple(job for job in ran if job not in on),
        remove_jobs=tuple(job for job in had if job not in ran and (job not in have or job in anew)),
        nodes=nodes,
        add_jobs=tuple(record for job, record in have.items() if job in anew),
        adopt=adopt,
        holds=_holds(before, after),
        reading=None if after.reading == before.reading else after.reading,
        priorities={
            job: have[job].priority for job in again if have[job].priority != had[job].priority and job not in anew
        },
        expected_end_ms={
            job: end for job in on if (end := runs[job].expected_end_ms) is not None and end != ran[job].expected_end_ms
        },
        flags=_flags(ran, runs, on) if flags else {},
        now_ms=after.now_ms,
    )


def keep_prices(before: Instance, after: Instance) -> Instance:
    """
    Return the later reading of a cluster with the prices of the earlier one where it states none.

    A resource manager states no prices, so a reading never takes them away.
    """
    changed = {}
    for kind in ("machines", "nodes"):
        prices = {one.id: one.price_milli_per_hour for one in getattr(before.cluster, kind)}
        if any(price is not None for price in prices.values()):
            changed[kind] = tuple(
                one
                if one.price_milli_per_hour is not None or prices.get(one.id) is None
                else one.model_copy(update={"price_milli_per_hour": prices[one.id]})
                for one in getattr(after.cluster, kind)
            )
    return after.model_copy(update={"cluster": after.cluster.model_copy(update=changed)}) if changed else after


def held_gpus(running: Iterable[Running]) -> set[tuple[str, int]]:
    """Return node and index of the GPUs that jobs run on."""
    return {(there.node, int(gpu)) for held in running for there in held.assignments for gpu in there.gpus}


def _flags(ran: Mapping[str, Running], runs: Mapping[str, Running], on: Iterable[str]) -> dict[str, dict[Flag, bool]]:
    """Return the flags that changed, by job."""
    differ: dict[str, dict[Flag, bool]] = {}
    for job in on:
        now, then = vars(runs[job]), vars(ran[job])
        if changed := {flag: now[flag] for flag in FLAGS if now[flag] != then[flag]}:
            differ[job] = changed
    return differ


def _unlisted(
    after: Instance, adopt: Iterable[Running], kept: Iterable[Running], gone: Container[str]
) -> Iterator[str]:
    """Yield which jobs run where the cluster lists nothing: an engine takes that in a load alone."""
    size_of = after.cluster.gpus_by_node
    for held in adopt:
        for there in held.assignments:
            if any(int(gpu) >= size_of.get(there.node, 0) for gpu in there.gpus) or there.node not in size_of:
                yield f"running: job {held.job!r} is on node {there.node!r} or GPUs there that are not listed"
    for held in kept:
        for there in held.assignments:
            if there.node in gone:
                yield f"running: job {held.job!r} is on node {there.node!r}, which is no longer listed"


def _holds(before: Instance, after: Instance) -> tuple[Hold, ...] | None:
    """Return all holds after a change of some, None where none changed; no resource manager lists failed GPUs."""
    failed = {hold.id: hold for hold in before.failed_gpus.values()}
    others = [tuple(hold for hold in one.holds if hold.id not in failed) for one in (before, after)]
    return None if others[0] == others[1] else (*others[1], *failed.values())


def _by(key: Callable[[R], str], records: Sequence[R]) -> dict[str, R]:
    return dict(zip(map(key, records), records, strict=True))


def _reload(before: Instance, after: Instance) -> tuple[str, ...]:
    """Return which machine types and domains are new or have another record: an engine keeps those that it loaded."""
    reasons = []
    for kind in ("machines", "domains"):
        old, new = _by(_id, getattr(before.cluster, kind)), _by(_id, getattr(after.cluster, kind))
        for name, record in new.items():
            if name not in old:
                reasons.append(f"cluster.{kind}: {name!r} is new")
            elif not _agree(record, old[name], ("source",) if kind == "machines" else ()):
                reasons.append(f"cluster.{kind}: {name!r} is another")
    if before.slowdowns != after.slowdowns:
        reasons.append("slowdowns: they changed")
    others = [f for f in ("resources", "block_sizes") if getattr(before.cluster, f) != getattr(after.cluster, f)]
    return (*reasons, *(f"cluster.{name}: they changed" for name in others))


def _agree(one: R, other: R, ignored: Iterable[str]) -> bool:
    """Return whether two records are equal in all fields but the ``ignored`` ones."""
    left, right = one.__dict__, other.__dict__
    same = dict.fromkeys(ignored)
    return left == right or {**left, **same} == {**right, **same}


def changed_nodes(before: Instance, after: Instance) -> dict[str, Node | None]:
    """Return the nodes that came or changed, by id; None: it went."""
    if before.cluster.nodes is after.cluster.nodes:
        return {}
    old, new = _by(_id, before.cluster.nodes), _by(_id, after.cluster.nodes)
    changes: dict[str, Node | None] = {node: None for node in old if node not in new}
    return changes | {
        node: record for node, record in new.items() if (was := old.get(node)) is not record and was != record
    }
