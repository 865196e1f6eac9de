"""The parts of a question, answered side by side, and a file of rows from which the same question goes on later."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import ValidationError

from placeopt.deadline import Deadline
from placeopt.documents.faults import validation_fault
from placeopt.documents.json_lines import JsonLinesFile
from placeopt.environment import versions
from placeopt.live_cluster.engine import Engine
from placeopt.model.base import Record
from placeopt.parallel import run_parallel

A = TypeVar("A", bound=Record)
T = TypeVar("T")


class Row(Record):
    """The answer to a part of a question; equal ``question`` and ``part`` are answered once."""

    question: str
    part: str
    answer: dict[str, Any]
    """The fields of a record."""


class Rows(JsonLinesFile[Row], Generic[A]):
    """
    The parts of a question and their answers; a context manager that locks the file.

    Answers of type ``kind`` are appended to the file ``path``, and those of the same question read from it; None: no
    file. ``question`` is all that an answer depends on beside its part and the version. ``jobs`` parts are answered
    side by side, in processes; None: as ``joblib.parallel_config`` says, dask and ray included. An answer that arrives
    after the ``deadline`` was cut short, and is left out. ``num_kept`` counts the answers that were read.
    """

    def __init__(
        self,
        path: Path | None,
        kind: type[A],
        question: tuple[object, ...],
        jobs: int | None,
        deadline: Deadline,
    ) -> None:
        words = (*question, versions()["placeopt"])
        self._question = hashlib.sha256("\n".join(map(str, words)).encode()).hexdigest()
        self._jobs, self._deadline = jobs, deadline
        super().__init__(path, Row, "an answer of whatif")
        try:
            self._known = {
                row.part: kind.model_validate(row.answer) for row in self.found if row.question == self._question
            }
        except ValidationError as error:
            self.__exit__()
            raise validation_fault(kind, error, str(path)) from None
        self._read = frozenset(self._known)
        self.num_kept = 0

    def answers(
        self,
        task: Callable[[Engine, T, Deadline], A | None],
        parts: Mapping[str, T],
        on_news: Callable[[int, int], None] | None,
        *,
        together: int = 1,
    ) -> dict[str, A]:
        """
        Return the answers by part, in their order, without those that an interruption left open.

        ``task`` answers one part; ``together`` parts share a solver process. ``on_news`` is called with the number of
        answers and of parts after each of these batches.
        """
        self.num_kept += len(self._read.intersection(parts))
        to_do = [(name, part) for name, part in parts.items() if name not in self._known]
        batches = [to_do[first : first + together] for first in range(0, len(to_do), together)]
        answer_all = partial(_answer, task=task, deadline=self._deadline)
        for done in run_parallel(answer_all, batches, self._jobs, cancelled=self._deadline.is_set):
            for name, answer in done:
                self._known[name] = answer
                self.append(Row(question=self._question, part=name, answer=answer.model_dump(mode="json")))
            if on_news is not None:
                on_news(len(self._known), len(parts))
        return {name: self._known[name] for name in parts if name in self._known}


def _answer(
    parts: list[tuple[str, T]], *, task: Callable[[Engine, T, Deadline], A | None], deadline: Deadline
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
