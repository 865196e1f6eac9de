"""Answers to the parts of a question, kept in a file so that the same question can be gone on with."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Generic, Self, TypeVar

from placeopt import __version__
from placeopt.formats.json_lines import JsonLinesFile
from placeopt.model import Instance
from placeopt.model.base import Record
from placeopt.whatif.capacity import Limits
from placeopt.whatif.records import Failure, Point, Price, RoundOutcome

A = TypeVar("A", Failure, Point, Price)


class CachedAnswer(Record):
    """The answer to a part of a question; equal ``question`` and ``part`` are asked once."""

    question: str
    part: str
    answer: Failure | Point | Price | RoundOutcome


class AnswerCache(Generic[A]):
    """
    What is known of a question's parts; a context manager that keeps other runs out of the file.

    Parameters
    ----------
    path
        Every answer is appended there, and taken from there if it is to the same question; None: nothing is kept.
    kind
        Of the answers.
    instance, limits, words
        The question: about which round, answered within which limits, and whatever else an answer depends on.
    cancelled
        What is answered once this is true was cut short, and is not kept.

    Attributes
    ----------
    found
        Part -> its answer, also of those that are added.
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
        told = (instance.digest, limits.time_limit_s, limits.threads, limits.seed, limits.method, *words, __version__)
        self._question = hashlib.sha256("\n".join(map(str, told)).encode()).hexdigest()
        self._cancelled = cancelled
        self._stack = ExitStack()
        self._file = None
        if path is not None:
            self._file = self._stack.enter_context(JsonLinesFile(path, CachedAnswer, "an answer of whatif"))
        rows = [] if self._file is None else [row for row in self._file.found if row.question == self._question]
        self.found: dict[str, A] = {row.part: row.answer for row in rows if isinstance(row.answer, kind)}
        self._outcomes = {row.part: row.answer for row in rows if isinstance(row.answer, RoundOutcome)}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def add(self, part: str, answer: A) -> None:
        """Take an answer, and keep it unless it was cut short."""
        self.found[part] = answer
        self._append(part, answer)

    def outcome(self, part: str, work_out: Callable[[], RoundOutcome]) -> RoundOutcome:
        """Return the figures of a round that the question goes by, worked out unless they are known."""
        if part not in self._outcomes:
            self._outcomes[part] = work_out()
            self._append(part, self._outcomes[part])
        return self._outcomes[part]

    def _append(self, part: str, answer: A | RoundOutcome) -> None:
        if self._file is not None and not self._cancelled():
            self._file.append(CachedAnswer(question=self._question, part=part, answer=answer))
