"""Answers to the parts of a question, in a file from which the same question goes on after an interruption."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

from placeopt import __version__
from placeopt.model import Instance
from placeopt.model.base import Record
from placeopt.whatif.answers import Failure, Price, RoundOutcome, SweepPoint
from placeopt.whatif.optional_rows import OptionalRows
from placeopt.whatif.round_solving import Limits

A = TypeVar("A", Failure, SweepPoint, Price)


class CachedAnswer(Record):
    """The answer to a part of a question; equal ``question`` and ``part`` are answered once."""

    question: str
    part: str
    answer: Failure | SweepPoint | Price | RoundOutcome


class AnswerCache(OptionalRows[CachedAnswer], Generic[A]):
    """
    The known answers to the parts of a question; a context manager that locks the file.

    Parameters
    ----------
    path
        File to which every answer is appended, and from which answers to the same question are read; None: no file.
    kind
        Of the answers.
    instance, limits, words
        The question: the round, the limits, and everything else that an answer depends on.
    cancelled
        An answer that arrives once this is true was cut short, and is not kept.

    Attributes
    ----------
    found
        Part -> its answer, added ones included.
    """

    def __init__(
        self,
        path: Path | None,
        kind: type[A],
        instance: Instance,
        limits: Limits,
        words: tuple[object, ...],
        cancelled: Callable[[], bool],
    ) -> None:
        parts = (instance.digest, limits.time_limit_s, limits.threads, limits.seed, limits.method, *words, __version__)
        self._question = hashlib.sha256("\n".join(map(str, parts)).encode()).hexdigest()
        self._cancelled = cancelled
        super().__init__(path, CachedAnswer, "an answer of whatif")
        rows = [row for row in self.earlier if row.question == self._question]
        self.found: dict[str, A] = {row.part: row.answer for row in rows if isinstance(row.answer, kind)}
        self._outcomes = {row.part: row.answer for row in rows if isinstance(row.answer, RoundOutcome)}

    def add(self, part: str, answer: A) -> None:
        """Add an answer, and keep it unless it was cut short."""
        self.found[part] = answer
        self._append(part, answer)

    def outcome(self, part: str, compute: Callable[[], RoundOutcome]) -> RoundOutcome:
        """Return the figures of a round that the question refers to, computed unless they are known."""
        if part not in self._outcomes:
            self._outcomes[part] = compute()
            self._append(part, self._outcomes[part])
        return self._outcomes[part]

    def _append(self, part: str, answer: A | RoundOutcome) -> None:
        if not self._cancelled():
            self.keep(CachedAnswer(question=self._question, part=part, answer=answer))
