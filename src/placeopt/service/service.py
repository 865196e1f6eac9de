"""
The service: a cluster that outlives the process, and the calls on it, for any transport.

All that touches the cluster runs in one thread, in the order in which calls came. A change is carried out by the
engine, then written to the journal with its reply, and only then answered. If the journal cannot take it, the cluster
is read back from the journal, so that what callers were told and what a restart finds are the same.
"""

from __future__ import annotations

import hashlib
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self, TypeVar

from placeopt.actions import Action, plan_actions, start_action
from placeopt.errors import BadInput, InternalFault, PlaceoptError
from placeopt.formats.documents import dumps, loads
from placeopt.live_cluster.engine import Engine
from placeopt.live_cluster.rebase import Committed
from placeopt.model import Instance, Placement, Plan, Policy
from placeopt.model.base import Record
from placeopt.model.plan import Unplaced
from placeopt.service.calls import CALLS
from placeopt.service.journal import ActionRow, Entry, Journal, Stored
from placeopt.service.messages import (
    ActionList,
    Answer,
    Changed,
    Changes,
    ClusterState,
    CommitRequest,
    CommitResult,
    Decide,
    Decided,
    Event,
    EventList,
    Outcomes,
    Question,
    RoundList,
    RoundStatus,
    StartFlags,
    StartRound,
    ToldAction,
)
from placeopt.service.questions import Questions
from placeopt.service.refused import Refused, malformed, refusal
from placeopt.service.rounds import Rounds
from placeopt.service.steps import Commit, SetPolicy, Step, Undo, Update, commit_of, read_steps, write_steps
from placeopt.service.writer import Writer

T = TypeVar("T")
MOST_WAITING = 1024
EVENTS_KEPT = 10_000
EVENTS_TOLD = 1_000
LONGEST_WAIT_S = 60
MOST_KEY = 200
OUTCOMES: tuple[Literal["open", "done", "failed"], ...] = ("open", "done", "failed")
Text = Mapping[str, str]
_NONE: Text = {}


class _Done(NamedTuple):
    """What a change came to: its steps, its words, the reply, the actions that are told and outcomes that are known."""

    steps: Sequence[Step]
    words: str
    reply: Record
    actions: Sequence[ToldAction] = ()
    outcomes: Sequence[tuple[tuple[int, int], str, str | None]] = ()
    loaded: bool = False
    """Whether another cluster was loaded, so that a snapshot is due."""


class _Request(NamedTuple):
    """A call with its arguments."""

    body: Any
    path: Text
    query: Text
    key: str | None
    digest: bytes


class Service:
    """
    A live cluster behind calls; a context manager. Every method may be called from any thread.

    Parameters
    ----------
    state
        Folder of the journal; None: nothing outlives the process.
    host_driver
        Whether a driver of a host system says what runs after every start: until it has loaded the cluster once
        (``put_cluster``), decisions are refused with 503.
    most_waiting
        Calls that may wait for the one that is at work; further ones are refused with 503.

    Raises
    ------
    BadInput
        If the folder cannot be used, or its journal cannot be read.
    """

    def __init__(
        self, state: Path | None = None, *, host_driver: bool = False, most_waiting: int = MOST_WAITING
    ) -> None:
        self._journal = Journal(state)
        self._engine = Engine()
        self._name: str | None = None
        self._policy = Policy()
        self._fault: str | None = None
        try:
            self._restore()
        except BaseException:
            self._engine.close()
            self._journal.close()
            raise
        self._greeted = not host_driver
        self._news = threading.Condition()
        self._events: deque[Event] = deque(map(_event, self._journal.latest(EVENTS_KEPT)), EVENTS_KEPT)
        self._numbers = self._numbers_now()
        self._dumped: tuple[int, bytes] | None = None
        self._questions = Questions()
        self._handlers: dict[str, Callable[[_Request], bytes]] = {
            "put_cluster": self._put_cluster,
            "state": lambda _: _json(self._numbers),
            "snapshot": self._snapshot,
            "changes": self._changes,
            "decide": self._decide,
            "start_round": self._start_round,
            "rounds": lambda _: _json(RoundList(rounds=self._rounds.latest())),
            "round": lambda request: _json(self._rounds.find(request.path["id"])),
            "cancel_round": lambda request: _json(self._rounds.cancel(request.path["id"])),
            "commit": self._commit,
            "outcome": self._outcome,
            "actions": self._actions,
            "explain": self._explain,
            "events": self._events_after,
            "whatif": self._whatif,
        }
        self._writer = Writer(most_waiting)
        self._rounds = Rounds(self._commit_round, self._round_over)
        self.on_round: Callable[[RoundStatus], None] | None = None
        """Called with every round that is over, in the thread of rounds."""
        self.on_jobs: Callable[[str, int], None] | None = None
        """Called with ``committed``, ``refused``, ``started`` or ``failed``, and a number of jobs."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop rounds, do what waits, and close the journal."""
        self._rounds.close()
        self._writer.close()
        with self._news:
            self._news.notify_all()
        self._engine.close()
        self._journal.close()

    @property
    def ready(self) -> bool:
        """Whether decisions are taken."""
        return self._greeted and self._fault is None

    @property
    def fault(self) -> str | None:
        """Why the service can do nothing until it is started anew; None while it can."""
        return self._fault

    @property
    def numbers(self) -> ClusterState:
        """The cluster in numbers, as of the last change."""
        return self._numbers

    def call(
        self, name: str, body: bytes = b"", *, path: Text = _NONE, query: Text = _NONE, key: str | None = None
    ) -> bytes:
        """
        Do a call of the table.

        Parameters
        ----------
        name
            Of ``service.calls.CALLS``.
        body
            JSON, of a call that takes a body.
        path, query
            Its arguments in the path and behind it.
        key
            ``Idempotency-Key``: a call that changes the cluster is done once under it; later ones get the same reply.

        Returns
        -------
        bytes
            The reply as JSON.

        Raises
        ------
        Refused
            For every reason why it was not done; nothing changed.
        """
        call = CALLS.get(name)
        if call is None:
            raise Refused(404, f"call {name!r}: expected one of {', '.join(CALLS)}")
        if key is not None and not (0 < len(key) <= MOST_KEY and key.isprintable()):
            raise Refused(400, f"Idempotency-Key: expected 1 to {MOST_KEY} printable characters")
        if extra := sorted(query.keys() - set(call.query)):
            raise Refused(400, f"{extra[0]}: {name} does not take it", place=extra[0])
        given = None
        if call.body is not None:
            try:
                given = loads(call.body, body, source="body")
            except BadInput as error:
                raise malformed(error) from None
        elif body.strip():
            raise Refused(400, f"{name} takes no body")
        digest = b"" if key is None else hashlib.sha256(repr((name, dict(path))).encode() + body).digest()
        try:
            reply: bytes = self._handlers[name](_Request(given, path, query, key, digest))
        except Exception as error:
            raise refusal(error) from error
        return reply

    # --- calls that change the cluster

    def _put_cluster(self, request: _Request) -> bytes:
        def work() -> _Done:
            instance: Instance = request.body
            if self._name is not None:  # revisions of one journal never go back
                instance = instance.model_copy(update={"revision": max(instance.revision, self._engine.revision + 1)})
            self._load(instance)
            self._greeted = True
            return _Done(
                (),
                f"cluster {instance.name!r} loaded",
                self._numbers_now(),
                outcomes=self._settled(instance),
                loaded=True,
            )

        return self._change(request, work, restored=False)

    def _changes(self, request: _Request) -> bytes:
        def work() -> _Done:
            asked: Changes = request.body
            self._expect(asked.revision)
            waiting: list[str] = []
            for step in asked.steps:
                waiting += step.carry_out(self._engine, self._cluster_name(), self._policy)
                if isinstance(step, SetPolicy):
                    self._policy = step.policy
            words = "; ".join(step.words() for step in asked.steps[:3]) + "; ..." * (len(asked.steps) > 3)
            return _Done(asked.steps, words, Changed(revision=self._engine.revision, waiting=tuple(waiting)))

        return self._change(request, work, restored=len(request.body.steps) > 1)

    def _decide(self, request: _Request) -> bytes:
        asked: Decide = request.body
        if asked.add_jobs and not asked.commit:
            raise Refused(400, "add_jobs: jobs come only with commit: true", place="add_jobs")
        if not asked.commit:
            return self._writer.do(lambda: _json(self._decided(asked)[0]))

        def work() -> _Done:
            steps: list[Step] = []
            if asked.add_jobs:
                steps.append(Update(do="update", add_jobs=asked.add_jobs))
                steps[0].carry_out(self._engine, self._cluster_name(), self._policy)
            reply, plan = self._decided(asked)
            done = asked.commit_to(self._engine, plan)
            step = commit_of(self._engine, plan, done, asked.flags())
            if step.starts:
                steps.append(step)
            actions = self._starts(step.starts)
            reply = reply.model_copy(update={"revision": self._engine.revision, "actions": actions})
            words = " and ".join(step.words() for step in steps) or "nothing changed"
            return _Done(steps, words, reply, actions)

        return self._change(request, work, restored=bool(asked.add_jobs))

    def _commit(self, request: _Request) -> bytes:
        asked: CommitRequest = request.body
        if (asked.plan is None) == (asked.round is None):
            raise Refused(400, "expected either plan or round", place="plan")
        plan = asked.plan
        if asked.round is not None:
            plan = self._rounds.find(asked.round).plan
            if plan is None:
                raise Refused(409, f"round {asked.round!r} has no plan, or no longer")
        if plan is None:
            raise InternalFault("a commit without a plan")
        chosen = plan
        return self._change(request, lambda: self._committed(chosen, asked, rebase=asked.rebase), restored=False)

    def _outcome(self, request: _Request) -> bytes:
        def work() -> _Done:
            asked: Outcomes = request.body
            steps: list[Step] = []
            known: list[tuple[tuple[int, int], str, str | None]] = []
            failed = 0
            for outcome in asked.outcomes:
                name = _action_name(outcome.action)
                row = self._journal.action(name)
                if row is None:
                    raise Refused(404, f"action {outcome.action!r}: none of this name was told, or long ago")
                if row.outcome == outcome.result:
                    continue  # said before
                if row.outcome != "open":
                    raise Refused(422, f"action {outcome.action!r}: is {row.outcome} already")
                known.append((name, outcome.result, outcome.detail))
                action = Action.model_validate_json(row.action)
                if outcome.result == "failed":
                    failed += 1
                    if action.do in ("start", "move") and self._runs(action.job):
                        steps.append(Undo(do="undo", job=action.job))
                        steps[-1].carry_out(self._engine, self._cluster_name(), self._policy)
            waiting = tuple(step.job for step in steps if isinstance(step, Undo))
            self._count("failed", failed)
            self._count("started", len(known) - failed)
            words = " and ".join(step.words() for step in steps) or f"{len(known)} actions done"
            return _Done(steps, words, Changed(revision=self._engine.revision, waiting=waiting), outcomes=known)

        return self._change(request, work, restored=True)

    # --- calls that read

    def _numbers_now(self) -> ClusterState:
        """Return the cluster in numbers; of an empty one without a cluster."""
        if self._name is None:
            return ClusterState(revision=0, waiting=0, running=0, nodes=0, ready=False)
        numbers = self._engine.numbers
        return ClusterState(**numbers._asdict(), ready=self.ready)

    def _snapshot(self, request: _Request) -> bytes:
        del request
        return self._writer.do(self._dump)

    def _start_round(self, request: _Request) -> bytes:
        self._require_ready()
        instance = self._writer.do(lambda: self._loaded().snapshot)
        return _json(self._rounds.start(instance, request.body))

    def _actions(self, request: _Request) -> bytes:
        wanted = request.query.get("outcome")
        if wanted not in (None, *OUTCOMES):
            raise Refused(400, f"outcome: {wanted!r}, expected one of {', '.join(OUTCOMES)}", place="outcome")
        rows = self._writer.do(lambda: self._journal.actions(OUTCOMES if wanted is None else (wanted,)))
        return _json(ActionList(actions=tuple(map(_told, rows))))

    def _explain(self, request: _Request) -> bytes:
        instance = self._writer.do(lambda: self._loaded().snapshot)
        return _json(Answer(revision=instance.revision, answer=self._questions.explain(request.path["job"], instance)))

    def _whatif(self, request: _Request) -> bytes:
        asked: Question = request.body
        instance = self._writer.do(lambda: self._loaded().snapshot)
        answer = self._questions.whatif(request.path["verb"], instance, asked)
        return _json(Answer(revision=instance.revision, answer=answer))

    def _events_after(self, request: _Request) -> bytes:
        after, wait_s = (_number(request.query, name) for name in ("after", "wait_s"))
        until = time.monotonic() + min(wait_s, LONGEST_WAIT_S)
        with self._news:
            while not (self._events and self._events[-1].number > after):
                left = until - time.monotonic()
                if left <= 0 or not self._news.wait(left):
                    break
            kept = list(self._events)
        first = kept[0].number if kept else 1
        events = tuple(event for event in kept if event.number > after)[:EVENTS_TOLD]
        return _json(EventList(events=events, last=kept[-1].number if kept else 0, missed=after + 1 < first))

    # --- how changes are done

    def _change(self, request: _Request, work: Callable[[], _Done], *, restored: bool) -> bytes:
        """Do a change in the writer's thread; ``restored``: it has several steps, all of which go if one fails."""

        def run() -> bytes:
            if request.key is not None and (stored := self._journal.stored(request.key)) is not None:
                if stored.request != request.digest:
                    raise Refused(422, f"Idempotency-Key {request.key!r} was used for another request")
                return stored.reply
            if self._fault is not None:
                raise Refused(503, self._fault)
            before = self._revision()
            greeted = self._greeted
            try:
                done = work()
                reply = _json(done.reply)
                entry = self._write(done, request, reply)
            except BaseException as error:
                self._greeted = greeted
                if restored or isinstance(error, sqlite3.Error) or self._revision() != before:
                    self._restore_or_stop()
                if isinstance(error, sqlite3.Error):
                    raise Refused(503, f"the journal cannot be written: {error}; nothing changed") from error
                raise
            self._tell(entry)
            return reply

        return self._writer.do(run)

    def _write(self, done: _Done, request: _Request, reply: bytes) -> Entry | None:
        """Write a change to the journal; nothing if there was none and no reply is to be kept."""
        if not (done.steps or done.outcomes or done.loaded or request.key is not None):
            return None
        with self._journal.transaction():
            entry = self._journal.add(self._engine.revision, done.words, write_steps(done.steps))
            if request.key is not None:
                self._journal.add_reply(request.key, entry.number, Stored(request.digest, reply))
            self._journal.add_actions(entry.number, map(_row, done.actions))
            self._journal.set_outcomes(done.outcomes)
            if done.loaded or self._journal.wants_snapshot:
                self._journal.add_snapshot(entry.number, self._dump())
        return entry

    def _tell(self, entry: Entry | None) -> None:
        self._numbers = self._numbers_now()
        if entry is not None:
            with self._news:
                self._events.append(_event(entry))
                self._news.notify_all()

    def _restore(self) -> None:
        """Read the cluster from the journal."""
        snapshot, entries = self._journal.start()
        if snapshot is None:
            self._name = None
            return
        self._load(loads(Instance, snapshot, source="journal"))
        for entry in entries:
            try:
                for step in read_steps(entry.steps):
                    step.carry_out(self._engine, self._cluster_name(), self._policy)
                    if isinstance(step, SetPolicy):
                        self._policy = step.policy
            except (PlaceoptError, ValueError) as error:
                raise BadInput(
                    f"journal: change {entry.number} cannot be done again: {error}; move the folder away to begin anew"
                ) from None
            if self._engine.revision != entry.revision:
                raise BadInput(
                    f"journal: change {entry.number} leads to revision {self._engine.revision}, it was "
                    f"{entry.revision}; another version wrote it"
                )

    def _restore_or_stop(self) -> None:
        try:
            self._restore()
        except (PlaceoptError, sqlite3.Error) as error:
            self._fault = f"the cluster cannot be read back from the journal: {error}; start the service anew"

    def _load(self, instance: Instance) -> None:
        self._engine.load(instance)
        self._name, self._policy, self._dumped = instance.name, instance.policy, None

    def _dump(self) -> bytes:
        """Return the snapshot as a file, made once a revision."""
        snapshot = self._loaded().snapshot
        if self._dumped is None or self._dumped[0] != snapshot.revision:
            self._dumped = snapshot.revision, dumps(snapshot)
        return self._dumped[1]

    # --- parts of changes

    def _decided(self, asked: Decide) -> tuple[Decided, Plan]:
        self._require_ready()
        jobs = (*asked.jobs, *(job.id for job in asked.add_jobs))
        if not jobs:
            raise Refused(400, "expected jobs or add_jobs", place="jobs")
        plan = self._loaded().place(jobs, method=asked.method, explain=asked.explain)
        return Decided(revision=self._engine.revision, placements=plan.placements, unplaced=plan.unplaced), plan

    def _committed(self, plan: Plan, asked: StartFlags, *, rebase: bool) -> _Done:
        self._require_ready()
        engine = self._loaded()
        changes = bool(plan.moved or plan.shrunk or plan.preempted)
        before = engine.snapshot if changes else None
        done: Committed = asked.commit_to(engine, plan, rebase=rebase)
        step = commit_of(engine, plan, done, asked.flags())
        actions = self._starts(step.starts) if before is None else self._ordered(before, step)
        reply = CommitResult(revision=engine.revision, committed=done.committed, refused=done.refused, actions=actions)
        self._count("committed", len(done.committed))
        self._count("refused", len(done.refused))
        return _Done((step,) if done.committed else (), step.words(), reply, actions)

    def _starts(self, placements: Iterable[Placement]) -> tuple[ToldAction, ...]:
        revision = self._engine.revision
        return _named(revision, [start_action(self._engine.job(p.job)[0], p, revision) for p in placements])

    def _ordered(self, before: Instance, step: Commit) -> tuple[ToldAction, ...]:
        """Return the actions of a commit that changed running jobs too, in a safe order."""
        after = self._engine.snapshot
        placed = tuple(Placement(job=r.job, option=r.option, assignments=r.assignments) for r in after.running)
        runs = {placement.job for placement in placed}
        plan = step.plan(before.revision, before.name, self._policy)
        plan = plan.model_copy(
            update={
                "instance": plan.instance.model_copy(update={"digest": before.digest}),
                "placements": placed,
                "unplaced": tuple(
                    Unplaced(job=job.id, reason="not_reached", detail="not in this commit")
                    for job in before.jobs
                    if job.id not in runs
                ),
            }
        )
        return _named(self._engine.revision, plan_actions(before, plan))

    def _settled(self, host: Instance) -> list[tuple[tuple[int, int], str, str | None]]:
        """Return what came of open actions by the word of the host: where its jobs run tells."""
        places = {running.job: running for running in host.running}
        settled: list[tuple[tuple[int, int], str, str | None]] = []
        for row in self._journal.actions(("open",)):
            action = Action.model_validate_json(row.action)
            running = places.get(action.job)
            there = None if running is None else sorted(a.node for a in running.assignments for _ in a.workers)
            wanted = sorted(part.node for part in action.parts) or None
            outcome = "done" if there == wanted else "failed"
            where = "does not run" if there is None else f"runs on {', '.join(there[:5])}"
            settled.append(((row.revision, row.place), outcome, f"found by the host: job {action.job!r} {where}"))
        return settled

    def _runs(self, job: str) -> bool:
        with suppress(BadInput):
            return self._engine.job(job)[1] is not None
        return False

    def _commit_round(self, plan: Plan, asked: StartRound) -> CommitResult:
        reply: list[Record] = []

        def work() -> _Done:
            done = self._committed(plan, asked, rebase=True)
            reply.append(done.reply)
            return done

        self._change(_Request(None, _NONE, _NONE, None, b""), work, restored=False)
        result = reply[0]
        if not isinstance(result, CommitResult):
            raise InternalFault(f"a commit gave {type(result).__name__}")
        return result

    def _round_over(self, status: RoundStatus) -> None:
        if self.on_round is not None:
            self.on_round(status)

    def _count(self, result: str, jobs: int) -> None:
        if self.on_jobs is not None and jobs:
            self.on_jobs(result, jobs)

    def _loaded(self) -> Engine:
        if self._name is None:
            raise Refused(422, "no cluster is loaded; begin with put_cluster")
        return self._engine

    def _cluster_name(self) -> str:
        self._loaded()
        return self._name or ""

    def _revision(self) -> int | None:
        return None if self._name is None else self._engine.revision

    def _expect(self, revision: int | None) -> None:
        if revision is not None and revision != self._loaded().revision:
            raise Refused(
                409,
                f"revision: {revision}, the cluster is at {self._engine.revision}",
                place="revision",
                more={"revision": self._engine.revision},
            )

    def _require_ready(self) -> None:
        if not self.ready:
            raise Refused(503, self._fault or "the host has not said yet what runs", more={"retry_after_s": 1})


def _json(record: Record) -> bytes:
    return record.model_dump_json(by_alias=True).encode()


def _number(query: Text, name: str) -> int:
    text = query.get(name, "0")
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise Refused(400, f"{name}: {text!r}, expected a whole number", place=name)
    return int(text)


def _event(entry: Entry) -> Event:
    return Event(number=entry.number, revision=entry.revision, words=entry.words)


def _named(revision: int, actions: Iterable[Action]) -> tuple[ToldAction, ...]:
    return tuple(ToldAction(id=f"{revision}.{place}", action=action) for place, action in enumerate(actions))


def _action_name(text: str) -> tuple[int, int]:
    revision, _, place = text.partition(".")
    return int(revision), int(place)


def _row(told: ToldAction) -> ActionRow:
    return ActionRow(*_action_name(told.id), told.action.model_dump_json(exclude_defaults=True))


def _told(row: ActionRow) -> ToldAction:
    action = Action.model_validate_json(row.action)
    outcome = next(known for known in OUTCOMES if known == row.outcome)
    return ToldAction(id=f"{row.revision}.{row.place}", action=action, outcome=outcome, detail=row.detail)
