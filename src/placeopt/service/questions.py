"""Questions about the live cluster that take a while: ``explain`` and the verbs of ``whatif``, on a snapshot."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

from placeopt.errors import BadArgument, BadInput
from placeopt.explain import explain, explain_all
from placeopt.live_cluster.engine import Engine
from placeopt.model import Instance
from placeopt.model.base import Record
from placeopt.service.messages import Question
from placeopt.service.refused import Refused
from placeopt.whatif import Limits, add, defrag, fail, fit, parse_job, slots

MOST_AT_ONCE = 2
EXPLAIN_S = 5.0
EXPLAIN_ALL_S = 20.0
GREEDY = "stranding"


def _fit(instance: Instance, asked: Question, limits: Limits) -> Record:
    return fit(instance, parse_job(_given(asked, "job"), instance), limits)


def _slots(instance: Instance, asked: Question, limits: Limits) -> Record:
    del asked, limits
    return slots(instance)


def _add(instance: Instance, asked: Question, limits: Limits) -> Record:
    return add(instance, _given(asked, "node_type"), limits=limits)


def _fail(instance: Instance, asked: Question, limits: Limits) -> Record:
    return fail(instance, asked.level or "node", k=asked.k or 1, limits=limits)


def _defrag(instance: Instance, asked: Question, limits: Limits) -> Record:
    return defrag(instance, asked.level or "node", limits=limits)


VERBS: dict[str, tuple[frozenset[str], Callable[[Instance, Question, Limits], Record]]] = {
    "fit": (frozenset({"job"}), _fit),
    "slots": (frozenset(), _slots),
    "add": (frozenset({"node_type"}), _add),
    "fail": (frozenset({"level", "k"}), _fail),
    "defrag": (frozenset({"level"}), _defrag),
}
"""Verb -> fields of the question that it takes, and its answer."""


class Questions:
    """Answers a few questions at once; a further one is refused."""

    def __init__(self) -> None:
        self._free = threading.BoundedSemaphore(MOST_AT_ONCE)

    def whatif(self, verb: str, instance: Instance, asked: Question) -> dict[str, Any]:
        """
        Answer a verb.

        Raises
        ------
        Refused
            404 for another verb, 400 for a field that it does not take or lacks, 503 if too many are at work.
        """
        if verb not in VERBS:
            raise Refused(404, f"whatif {verb!r}: expected one of {', '.join(VERBS)}")
        takes, ask = VERBS[verb]
        given = {name for name, value in asked if value is not None} - {"time_limit_s"}
        if extra := sorted(given - takes):
            raise Refused(400, f"{verb} does not take {extra[0]!r}", place=extra[0])
        return self._at_work(lambda: ask(instance, asked, Limits(time_limit_s=asked.time_limit_s)))

    def explain(self, job: str, instance: Instance) -> dict[str, Any]:
        """
        Explain a job, beside what runs and what greedy would start now.

        Raises
        ------
        Refused
            404 if there is no such job, 503 if too many questions are at work.
        """
        if all(known.id != job for known in instance.jobs):
            raise Refused(404, f"job {job!r}: the cluster has no such job")

        def explained() -> Record:
            with Engine() as engine:
                plan = engine.solve(instance, method=GREEDY, time_limit_s=EXPLAIN_S)
            return explain(instance, plan, job, time_limit_s=EXPLAIN_S)

        return self._at_work(explained)

    def explain_all(self, instance: Instance) -> dict[str, Any]:
        """Explain the whole queue, beside what runs and what greedy would start now; raises as `explain`."""

        def explained() -> Record:
            with Engine() as engine:
                plan = engine.solve(instance, method=GREEDY, time_limit_s=EXPLAIN_S)
            return explain_all(instance, plan, time_limit_s=EXPLAIN_ALL_S)

        return self._at_work(explained)

    def _at_work(self, ask: Callable[[], Record]) -> dict[str, Any]:
        if not self._free.acquire(blocking=False):
            raise Refused(503, f"{MOST_AT_ONCE} questions are at work already", more={"retry_after_s": 1})
        try:
            answer: dict[str, Any] = json.loads(ask().model_dump_json(by_alias=True))
        except BadArgument as error:
            raise Refused(400, str(error)) from None
        except BadInput as error:
            raise Refused(422, str(error)) from None
        finally:
            self._free.release()
        return answer


def _given(asked: Question, name: str) -> str:
    value: str | None = getattr(asked, name)
    if value is None:
        raise Refused(400, f"expected {name!r}", place=name)
    return value
