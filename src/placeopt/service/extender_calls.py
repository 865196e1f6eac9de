"""
The calls of kube-scheduler on the cluster of a service: journaled, one after the other, late reservations given back.

What an extender changes goes through the journal as every other change: steps, actions, and one row for each
reservation. After a fault the extender goes on from the journal, as after a restart.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Collection
from contextlib import suppress
from typing import Any

from pydantic import RootModel

from placeopt.errors import BadInput
from placeopt.service.durable_cluster import Change, DurableCluster
from placeopt.service.extender import Extender
from placeopt.service.extender.answers import error_result
from placeopt.service.extender.arguments import BindingArgs
from placeopt.service.extender.extender import Binder
from placeopt.service.issued_actions import starts
from placeopt.service.refused import Refused
from placeopt.service.request import Request
from placeopt.service.steps import Commit, words_of
from placeopt.service.writer import Writer

EXPIRE_EVERY_S = 5.0
"""Seconds between two looks for late reservations; calls of kube-scheduler look as well."""
VERBS = ("filter", "prioritize", "preempt", "bind")
_TOLD_AS_ERROR = (409, 422, 503)
Answered = RootModel[Any]


class ExtenderCalls:
    """
    Filter, prioritize, preempt and bind for a service.

    Parameters
    ----------
    cluster
        The cluster with its journal.
    writer
        The thread of all that touches it.
    change
        Carries out a change, in that thread, and returns the reply.
    binder
        Creates Bindings, in the thread of the call; None: bind is refused.
    bind_within_s
        Seconds for which the room of a gang is held without a bind.
    clock
        Returns the time in seconds since 1970: deadlines outlive the process.
    """

    def __init__(
        self,
        cluster: DurableCluster,
        writer: Writer,
        change: Callable[[Callable[[], Change]], bytes],
        *,
        binder: Binder | None,
        bind_within_s: float,
        clock: Callable[[], float],
    ) -> None:
        self._cluster, self._writer, self._change = cluster, writer, change
        self._binder, self._bind_within_s, self._clock = binder, bind_within_s, clock
        self._extender: Extender | None = None
        self._follows = False
        """Whether the extender remembers what the journal has."""
        self._closing = threading.Event()
        self._timer = threading.Thread(target=self._expire_again, name="placeopt-expire", daemon=True)
        self._timer.start()

    def close(self) -> None:
        """Look no more for late reservations."""
        self._closing.set()
        self._timer.join()

    def forget(self) -> None:
        """Go on from the journal at the next call; in the writer's thread."""
        self._follows = False

    def answer(self, verb: str, request: Request) -> bytes:
        """
        Answer filter, prioritize, preempt or bind; the reply is JSON.

        Raises
        ------
        Refused
            400 for a body that is not one of the protocol; what the protocol has an ``Error`` for is no refusal.
        """
        given = dict(request.body.model_extra or {})
        try:
            if verb == "bind":
                return self._bind(BindingArgs.read(given))
            return self._do(lambda extender: getattr(extender, verb)(given))
        except BadInput as error:
            place, _, _ = str(error).partition(": ")
            if not place.startswith("body"):
                raise
            raise Refused(400, str(error), place=place.removeprefix("body").removeprefix(".") or None) from None
        except Refused as refused:
            if refused.status not in _TOLD_AS_ERROR or verb not in ("filter", "bind"):
                raise
            return _json({"Error": refused.detail} if verb == "bind" else error_result(refused.detail))

    def keep(self, revisions: Collection[int]) -> dict[str, str | None]:
        """Keep the room of starts that are done, by their revisions; return reservations; in the writer's thread."""
        if not revisions or not self._cluster.ready:
            return {}
        extender = self._following()
        extender.keep(revisions)
        return {job: extender.reservation(job) for job in extender.take_changed().jobs}

    def expire(self) -> None:
        """Give back the room of late reservations."""
        self._writer.do(self._expire)

    def _bind(self, args: BindingArgs) -> bytes:
        """Take the room, create the Binding beside the writer, and keep what came of it."""
        begun = self._do(lambda extender: extender.begin_bind(args))
        if begun != b"null":
            return begun
        extender = self._extender
        if extender is None:
            raise Refused(503, "the service is about to end")
        known, why = extender.create_binding(args)
        return self._do(lambda extender: extender.end_bind(args, known, why))

    def _do(self, work: Callable[[Extender], Any]) -> bytes:
        return self._writer.do(lambda: self._apply(work))

    def _apply(self, work: Callable[[Extender], Any]) -> bytes:
        """Do something with the extender, and write down what it changed; in the writer's thread."""

        def run() -> Change:
            extender = self._following()
            answer = work(extender)
            changed = extender.take_changed()
            engine = self._cluster.engine
            commits = [step for step in changed.steps if isinstance(step, Commit)]
            return Change(
                changed.steps,
                words_of(changed.steps) or "starts by kube-scheduler",
                Answered(answer),
                [action for step in commits for action in starts(engine, step.starts)],
                [((revision, 0), outcome, words) for revision, (outcome, words) in changed.outcomes.items()],
                reservations={job: extender.reservation(job) for job in changed.jobs},
            )

        return self._change(run)

    def _following(self) -> Extender:
        engine = self._cluster.deciding
        if self._extender is None:
            self._extender = Extender(engine, binder=self._binder, bind_within_s=self._bind_within_s, clock=self._clock)
        if not self._follows:
            self._extender.restore(self._cluster.journal.reservations())
            self._follows = True
        return self._extender

    def _expire(self) -> None:
        with suppress(Refused):  # no cluster, or no decisions yet
            due = self._following().next_expiry_s
            if due is not None and due <= self._clock():
                self._apply(lambda extender: extender.expire())

    def _expire_again(self) -> None:
        while not self._closing.wait(EXPIRE_EVERY_S):
            with suppress(Exception):  # the next call meets the same fault, and tells it
                self.expire()


def _json(answer: Any) -> bytes:
    return json.dumps(answer, separators=(",", ":")).encode()
