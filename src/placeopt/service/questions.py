"""Questions about the live cluster that take a while, on a snapshot: ``explain`` and the verbs of ``whatif``."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from placeopt.deadline import Deadline
from placeopt.errors import BadArgument, BadInput
from placeopt.explain import explain, explain_all
from placeopt.explain.question import job_named
from placeopt.live_cluster.engine import Engine
from placeopt.model import Instance, Plan
from placeopt.service.messages import Answer, Question
from placeopt.service.refused import Refused
from placeopt.service.request import Request
from placeopt.view import View
from placeopt.whatif import Limits, add, defrag, fail, fit, parse_job, slots

MOST_AT_ONCE = 2
"""Questions of one kind, what-ifs or explanations, that one caller may have at work."""
MOST_IN_ALL = 8
"""Questions of one kind at work, of all callers."""
EXPLAIN_S = 5.0
EXPLAIN_ALL_S = 20.0
GREEDY = "stranding"


def _fit(instance: Instance, asked: Question, limits: Limits, cancel: threading.Event) -> View:
    text = _given(asked, "job")
    return fit(instance, parse_job(text, instance), limits, cancel).view(text)


def _slots(instance: Instance, asked: Question, limits: Limits, cancel: threading.Event) -> View:
    del asked, limits, cancel
    return slots(instance).view()


def _add(instance: Instance, asked: Question, limits: Limits, cancel: threading.Event) -> View:
    return add(instance, _given(asked, "node_type"), limits=limits, cancel=cancel).view()


def _fail(instance: Instance, asked: Question, limits: Limits, cancel: threading.Event) -> View:
    return fail(instance, asked.level or "node", k=asked.k or 1, limits=limits, cancel=cancel).view()


def _defrag(instance: Instance, asked: Question, limits: Limits, cancel: threading.Event) -> View:
    return defrag(instance, asked.level or "node", limits=limits, cancel=cancel).view()


VERBS: dict[str, tuple[frozenset[str], Callable[[Instance, Question, Limits, threading.Event], View]]] = {
    "fit": (frozenset({"job"}), _fit),
    "slots": (frozenset(), _slots),
    "add": (frozenset({"node_type"}), _add),
    "fail": (frozenset({"level", "k"}), _fail),
    "defrag": (frozenset({"level"}), _defrag),
}
"""Verb -> fields of the question that it takes, and its answer."""


class Questions:
    """
    Answers a few questions at once, of every caller some; further ones are refused.

    ``look``: Returns the cluster; it is asked within the time of a question, of a question that is not refused.
    """

    def __init__(self, look: Callable[[], Instance]) -> None:
        self._look = look
        self._whatifs, self._explanations = _AtWork("what-ifs"), _AtWork("explanations")

    def stop(self) -> None:
        """End all questions with what is known, those that are at work and those to come."""
        self._whatifs.stop()
        self._explanations.stop()

    def whatif(self, request: Request) -> Answer:
        """
        Answer a verb, within the time limit of the question.

        Raises
        ------
        Refused
            404 for another verb, 400 for a field that it does not take or lacks, 503 if too many are at work.
        """
        asked: Question = request.body
        verb = request.path["verb"]
        if verb not in VERBS:
            raise Refused(404, f"whatif {verb!r}: expected one of {', '.join(VERBS)}")
        takes, ask = VERBS[verb]
        given = {name for name, value in asked if value is not None} - {"time_limit_s"}
        if extra := sorted(given - takes):
            raise Refused(400, f"{verb} does not take {extra[0]!r}", place=extra[0])
        with self._whatifs.one(request, asked.time_limit_s) as deadline:
            now = self._look()
            return _answer(now, lambda: ask(now, asked, Limits(time_limit_s=asked.time_limit_s), deadline))

    def explain(self, request: Request) -> Answer:
        """
        Explain a job, or without one the whole queue, beside what runs and what greedy would start now.

        Raises
        ------
        Refused
            404 if there is no such job, or it was left out, 503 if too many questions are at work.
        """
        job = request.path.get("job")
        limit_s = EXPLAIN_ALL_S if job is None else EXPLAIN_S
        with self._explanations.one(request, limit_s) as deadline:
            now = self._look()
            if job is None:
                return _answer(
                    now, lambda: explain_all(now, _greedy(now, deadline), time_limit_s=limit_s, cancel=deadline).view()
                )
            try:
                job_named(now, job)
            except BadInput as error:
                raise Refused(404, str(error)) from None
            return _answer(
                now, lambda: explain(now, _greedy(now, deadline), job, time_limit_s=limit_s, cancel=deadline).view()
            )


class _AtWork:
    """The questions of one kind that are at work, by caller."""

    def __init__(self, kind: str) -> None:
        self._kind, self._lock = kind, threading.Lock()
        self._of: Counter[str] = Counter()
        self._deadlines: set[Deadline] = set()
        self._stopped = False

    def stop(self) -> None:
        with self._lock:
            self._stopped = True
            for deadline in self._deadlines:
                deadline.set()

    @contextmanager
    def one(self, request: Request, time_limit_s: float) -> Iterator[Deadline]:
        """Yield the deadline of one more; raise `Refused` with 503 if its caller, or all, have too many."""
        caller, deadline = request.caller, Deadline(time_limit_s, request.cancel)
        with self._lock:
            if self._stopped:
                raise Refused(503, "the service is about to end")
            if self._of[caller] >= MOST_AT_ONCE or self._of.total() >= MOST_IN_ALL:
                raise Refused(503, f"{self._of.total()} {self._kind} are at work already", more={"retry_after_s": 1})
            self._of[caller] += 1
            self._deadlines.add(deadline)
        try:
            yield deadline
        finally:
            with self._lock:
                self._of -= Counter([caller])
                self._deadlines.remove(deadline)


def _greedy(instance: Instance, deadline: Deadline) -> Plan:
    """Return what greedy would start now."""
    with Engine() as engine:
        return engine.solve(instance, method=GREEDY, time_limit_s=EXPLAIN_S, cancel=deadline)


def _answer(now: Instance, ask: Callable[[], View]) -> Answer:
    try:
        return Answer(revision=now.revision, answer=ask().model_dump(mode="json"))
    except BadArgument as error:
        raise Refused(400, str(error)) from None
    except BadInput as error:
        raise Refused(422, str(error)) from None


def _given(asked: Question, name: str) -> str:
    value: str | None = getattr(asked, name)
    if value is None:
        raise Refused(400, f"expected {name!r}", place=name)
    return value
