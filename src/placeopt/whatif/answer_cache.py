"""Answers to the parts of a question, side by side, and in a file from which the same question goes on later."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Generic, TypeVar

from placeopt.deadline import Deadline
from placeopt.documents.json_lines import JsonLinesFile
from placeopt.environment import versions
from placeopt.live_cluster.engine import Engine
from placeopt.model import Instance
from placeopt.model.base import Record
from placeopt.parallel import run_parallel
from placeopt.whatif.answers import Failure, Price, RoundOutcome, SweepPoint
from placeopt.whatif.round_solving import Limits, outcome_of

A = TypeVar("A", Failure, SweepPoint, Price)
T = TypeVar("T")


class CachedAnswer(Record):
    """The answer to a part of a question; equal ``question`` and ``part`` are answered once."""

    question: str
    part: str
    answer: Failure | SweepPoint | Price | RoundOutcome


class AnswerCache(JsonLinesFile[CachedAnswer], Generic[A]):
    """
    The parts of a question and their answers; a context manager that locks the file.

    Answers of type ``kind`` are appended to the file ``path``, and those of the same question read from it; None: no
    file. The question is the round, the limits, and ``words`` for everything else that an answer depends on. ``jobs``
    parts are answered side by side, in processes; None: as ``joblib.parallel_config`` says. An answer that arrives
    after the ``deadline`` was cut short, and is left out.
    """

    def __init__(
        self,
        path: Path | None,
        kind: type[A],
        instance: Instance,
        limits: Limits,
        words: tuple[object, ...],
        jobs: int | None,
        deadline: Deadline,
    ) -> None:
        parts = (
            instance.digest,
            limits.time_limit_s,
            limits.threads,
            limits.seed,
            limits.method,
            *words,
            versions()["placeopt"],
        )
        self._question = hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()
        self._jobs, self._deadline = jobs, deadline
        super().__init__(path, CachedAnswer, "an answer of whatif")
        rows = [row for row in self.found if row.question == self._question]
        self._known: dict[str, A] = {row.part: row.answer for row in rows if isinstance(row.answer, kind)}
        self._outcomes = {row.part: row.answer for row in rows if isinstance(row.answer, RoundOutcome)}

    def unanswered(self, parts: Mapping[str, T]) -> list[tuple[str, T]]:
        """Return the parts that have no answer yet."""
        return [(name, part) for name, part in parts.items() if name not in self._known]

    def answers(
        self,
        task: Callable[[Engine, T, Deadline], A],
        parts: Mapping[str, T],
        on_news: Callable[[int, int], None] | None,
        *,
        together: int = 1,
    ) -> list[A]:
        """
        Return the answers to all parts in their order, without those that an interruption left open.

        ``task`` answers one part; ``together`` parts share a solver process. ``on_news`` gets the number of answers and
        of parts after each of these batches.
        """
        to_do = self.unanswered(parts)
        batches = [to_do[first : first + together] for first in range(0, len(to_do), together)]
        answer_all = partial(_answer, task=task, deadline=self._deadline)
        for done in run_parallel(answer_all, batches, self._jobs, cancelled=self._deadline.is_set):
            for name, answer in done:
                self._known[name] = answer
                self.append(CachedAnswer(question=self._question, part=name, answer=answer))
            if on_news is not None:
                on_news(len(self._known), len(parts))
        return [self._known[name] for name in parts if name in self._known]

    def outcome(self, part: str, instance: Instance, limits: Limits) -> RoundOutcome:
        """Return the figures of a round that the question refers to, solved unless they are known."""
        if part not in self._outcomes:
            with Engine() as engine:
                self._outcomes[part] = outcome_of(engine, instance, limits, self._deadline)
            if not self._deadline.is_set():
                self.append(CachedAnswer(question=self._question, part=part, answer=self._outcomes[part]))
        return self._outcomes[part]


def _answer(
    parts: list[tuple[str, T]], *, task: Callable[[Engine, T, Deadline], A], deadline: Deadline
) -> list[tuple[str, A]]:
    """Answer parts by one engine, until the deadline."""
    answers = []
    with Engine() as engine:
        for name, part in parts:
            answer = None if deadline.is_set() else task(engine, part, deadline)
            if answer is None or deadline.is_set():
                break
            answers.append((name, answer))
    return answers
