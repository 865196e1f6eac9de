"""
The service: a cluster that outlives the process, and the calls on it, for any transport.

All that touches the cluster runs in one thread, in the order in which calls came; rounds and questions run beside it,
on snapshots.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Self

from placeopt.model import Instance, Plan
from placeopt.model.base import Record
from placeopt.scheduling import Scheduling, Telemetry, refuse_unread
from placeopt.service.commits import decided, under_policy_of, with_decision, with_plan
from placeopt.service.durable_cluster import Change, DurableCluster
from placeopt.service.extender.extender import BIND_WITHIN_S, Binder
from placeopt.service.extender_calls import VERBS, ExtenderCalls
from placeopt.service.issued_actions import found_by_host, read_row
from placeopt.service.journal import Entry, Journal
from placeopt.service.messages import (
    OUTCOMES,
    ActionList,
    Changed,
    Changes,
    ClusterState,
    CommitRequest,
    CommitResult,
    Decide,
    IssuedAction,
    RoundList,
    RoundStatus,
    StartFlags,
    StartRound,
)
from placeopt.service.news import MOST_KEPT, News
from placeopt.service.outcomes import with_outcomes
from placeopt.service.questions import Questions
from placeopt.service.refused import Refused, refusal
from placeopt.service.request import NO_TEXT, Request, Text, read_request, whole_number
from placeopt.service.rounds import Rounds
from placeopt.service.snapshot_files import SnapshotFiles
from placeopt.service.steps import words_of
from placeopt.service.writer import Writer

MOST_WAITING = 1024


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
    scheduling
        The policy that decides whole rounds; what it leaves out is as the loaded cluster's policy says. None: that
        policy alone, by the method of each request.
    telemetry
        Where the use of GPUs is measured, for that policy; None: nowhere.
    binder, bind_within_s, clock
        Of the calls of kube-scheduler, see ``ExtenderCalls``.

    Raises
    ------
    BadInput
        If the folder cannot be used, its journal cannot be read, or the policy reads what no cluster shows.
    """

    def __init__(
        self,
        state: Path | None = None,
        *,
        host_driver: bool = False,
        most_waiting: int = MOST_WAITING,
        scheduling: Scheduling | None = None,
        telemetry: Telemetry | None = None,
        binder: Binder | None = None,
        bind_within_s: float = BIND_WITHIN_S,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if scheduling is not None:
            refuse_unread(scheduling, telemetry)
        journal = Journal(state)
        try:
            self._cluster = DurableCluster(journal, host_driver=host_driver)
        except BaseException:
            journal.close()
            raise
        self.on_round: Callable[[RoundStatus], None] | None = None
        """Called with every round that is over, in the thread of rounds."""
        self.on_jobs: Callable[[str, int], None] | None = None
        """Called with ``committed``, ``refused``, ``started`` or ``failed``, and a number of jobs."""
        self.news = News(journal.latest(MOST_KEPT))
        """What changed, for those that wait for it."""
        self._numbers = self._cluster.state()
        interrupted = [
            RoundStatus(id=name, state="interrupted", revision=revision, time_limit_s=limit)
            for name, revision, limit in journal.interrupted
        ]
        self._writer = Writer(most_waiting, self._together)
        self._questions = Questions(lambda: self._writer.do(lambda: self._cluster.engine.snapshot))
        self._untold: list[Entry] = []
        self._files = SnapshotFiles(journal, self._writer)
        self._scheduling = scheduling
        self._rounds = Rounds(self._commit_round, self._round_over, interrupted, scheduling, telemetry)
        self._handlers: dict[str, Callable[[Request], bytes]] = {
            "put_cluster": self._put_cluster,
            "state": lambda _: _json(self._numbers),
            "snapshot": lambda _: self._files.file_of(self._writer.do(lambda: self._cluster.engine.snapshot)),
            "changes": self._changes,
            "decide": self._decide,
            "start_round": self._start_round,
            "rounds": lambda _: _json(RoundList(rounds=self._rounds.latest())),
            "round": lambda request: _json(self._rounds.find(request.path["id"])),
            "cancel_round": lambda request: _json(self._rounds.cancel(request.path["id"])),
            "commit": self._commit,
            "outcome": self._outcome,
            "actions": self._actions,
            "explain": lambda request: _json(self._questions.explain(request)),
            "explain_all": lambda request: _json(self._questions.explain(request)),
            "events": self._events,
            "whatif": lambda request: _json(self._questions.whatif(request)),
        }
        change = partial(self._apply, Request())
        self._kubernetes = ExtenderCalls(
            self._cluster, self._writer, change, binder=binder, bind_within_s=bind_within_s, clock=clock
        )
        self._handlers |= {verb: partial(self._kubernetes.answer, verb) for verb in VERBS}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Stop rounds and questions, do what waits, and close the journal."""
        self.news.stop_waiting()
        self._questions.stop()
        self._rounds.close()
        self._kubernetes.close()
        self._writer.close()
        self._files.close()
        self._cluster.close()

    @property
    def ready(self) -> bool:
        """Whether decisions are taken."""
        return self._cluster.ready

    @property
    def fault(self) -> str | None:
        """Why the service can do nothing until it is started again; None while it can."""
        return self._cluster.fault

    @property
    def numbers(self) -> ClusterState:
        """The cluster in numbers, as of the last change."""
        return self._numbers

    def call(
        self,
        name: str,
        body: bytes = b"",
        *,
        path: Text = NO_TEXT,
        query: Text = NO_TEXT,
        key: str | None = None,
        caller: str = "",
        cancel: threading.Event | None = None,
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
        caller
            Who asks: each has its own share of the questions that are answered at once.
        cancel
            Set it from another thread to end a question with what is known by then. Changes are not cut short.

        Returns
        -------
        bytes
            The reply as JSON.

        Raises
        ------
        Refused
            For every reason why it was not done; nothing changed.
        """
        request = read_request(name, body, path, query, key)._replace(caller=caller, cancel=cancel)
        try:
            reply: bytes = self._handlers[name](request)
        except Exception as error:
            raise refusal(error) from error
        return reply

    # calls that change the cluster, in the writer's thread

    def _put_cluster(self, request: Request) -> bytes:
        def work() -> Change:
            host: Instance = request.body
            outcomes = found_by_host(self._told(("open",)), host)
            left = self._cluster.load(host)
            self._kubernetes.forget()
            words = " ".join((f"cluster {host.name!r} loaded", *map(str, left)))
            return Change((), words, self._cluster.state(), outcomes=outcomes, loaded=True)

        return self._change(request, work)

    def _changes(self, request: Request) -> bytes:
        def work() -> Change:
            asked: Changes = request.body
            self._cluster.expect(asked.revision)
            waiting = [job for step in asked.steps for job in self._cluster.carry_out(step)]
            reply = Changed(revision=self._cluster.engine.revision, waiting=tuple(waiting))
            return Change(asked.steps, words_of(asked.steps), reply)

        return self._change(request, work)

    def _decide(self, request: Request) -> bytes:
        asked: Decide = request.body
        if asked.add_jobs and not asked.commit:
            raise Refused(400, "add_jobs: jobs come only with commit: true", place="add_jobs")
        if not (asked.jobs or asked.add_jobs):
            raise Refused(400, "expected jobs or add_jobs", place="jobs")
        if not asked.commit:
            return self._writer.do(lambda: _json(decided(self._cluster.deciding, asked)[0]))

        def work() -> Change:
            change = with_decision(self._cluster, asked)
            self._count("committed", len(change.actions))
            return change

        return self._change(request, work)

    def _commit(self, request: Request) -> bytes:
        asked: CommitRequest = request.body
        if (asked.plan is None) == (asked.round is None):
            raise Refused(400, "expected either plan or round", place="plan")

        def work() -> Change:  # finds the plan here: under a key that was answered, the round may be long gone
            plan = asked.plan if asked.round is None else self._rounds.find(asked.round).plan
            if plan is None:
                raise Refused(409, f"round {asked.round!r} has no plan, or no longer")
            return self._committed(plan, asked, rebase=asked.rebase)[0]

        reply = self._change(request, work)
        if asked.round is not None:
            self._rounds.committed(asked.round, CommitResult.model_validate_json(reply))
        return reply

    def _outcome(self, request: Request) -> bytes:
        def work() -> Change:
            change = with_outcomes(self._cluster, request.body)
            for result, counted in (("failed", "failed"), ("done", "started")):
                self._count(counted, sum(outcome == result for _, outcome, _ in change.outcomes))
            started = {revision for (revision, _), outcome, _ in change.outcomes if outcome == "done"}
            return change._replace(reservations=self._kubernetes.keep(started))

        return self._change(request, work)

    # calls that read

    def _start_round(self, request: Request) -> bytes:
        asked: StartRound = request.body
        if self._scheduling is not None and asked.method != "auto":
            rules = self._scheduling.name
            raise Refused(400, f"method: {asked.method!r}; policy {rules!r} has its own, expected auto", place="method")
        name = secrets.token_hex(8)
        journal = self._cluster.journal

        def begin() -> Instance:
            instance = self._cluster.deciding.snapshot
            journal.begin_round(name, instance.revision, asked.time_limit_s)
            return instance

        instance = self._writer.do(begin)
        try:
            return _json(self._rounds.start(name, instance, asked))
        except Refused:
            self._writer.do(lambda: journal.end_round(name))
            raise

    def _actions(self, request: Request) -> bytes:
        wanted = request.query.get("outcome")
        if wanted not in (None, *OUTCOMES):
            raise Refused(400, f"outcome: {wanted!r}, expected one of {', '.join(OUTCOMES)}", place="outcome")
        told = self._writer.do(lambda: self._told(OUTCOMES if wanted is None else (wanted,)))
        return _json(ActionList(actions=told))

    def _events(self, request: Request) -> bytes:
        after, wait_s = (whole_number(request.query, name) for name in ("after", "wait_s"))
        return _json(self.news.after(after, wait_s))

    # parts of calls

    def _change(self, request: Request, work: Callable[[], Change]) -> bytes:
        return self._writer.do(lambda: self._apply(request, work))

    def _apply(self, request: Request, work: Callable[[], Change]) -> bytes:
        try:
            reply, entry = self._cluster.change(work, request.key, request.digest)
        except BaseException:
            self._kubernetes.forget()  # the cluster may have been read back from the journal
            raise
        if entry is not None:
            self._untold.append(entry)
        return reply

    @contextmanager
    def _together(self) -> Iterator[None]:
        """Do calls that waited at the same time, and tell what they changed once it is on disk."""
        self._untold = []
        try:
            with self._cluster.together():
                yield
        except BaseException:
            self._kubernetes.forget()  # the cluster was read back from the journal
            raise
        self._numbers = self._cluster.state()
        for entry in self._untold:
            self.news.add(entry)
        if self._untold and self._cluster.journal.wants_snapshot:
            self._files.keep(self._untold[-1].number, self._cluster.engine.snapshot)

    def _committed(self, plan: Plan, asked: StartFlags, *, rebase: bool) -> tuple[Change, CommitResult]:
        change, result = with_plan(self._cluster, plan, asked, rebase=rebase)
        self._count("committed", len(result.committed))
        self._count("refused", len(result.refused))
        return change, result

    def _commit_round(self, plan: Plan, asked: StartRound) -> CommitResult:
        results: list[CommitResult] = []

        def work() -> Change:
            policy = () if self._scheduling is None else under_policy_of(self._cluster, plan)
            change, result = self._committed(plan, asked, rebase=True)
            results.append(result)
            return change.after(policy)

        self._change(Request(), work)
        return results[0]

    def _round_over(self, status: RoundStatus) -> None:
        with suppress(Refused):  # the service is about to end: the round counts as interrupted
            self._writer.do(lambda: self._cluster.journal.end_round(status.id))
        if self.on_round is not None:
            self.on_round(status)

    def _told(self, outcomes: Sequence[str]) -> tuple[IssuedAction, ...]:
        return tuple(map(read_row, self._cluster.journal.actions(outcomes)))

    def _count(self, result: str, jobs: int) -> None:
        if self.on_jobs is not None and jobs:
            self.on_jobs(result, jobs)


def _json(record: Record) -> bytes:
    return record.model_dump_json(by_alias=True).encode()
