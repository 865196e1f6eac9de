"""Answers about a cluster of which not all may have been read: what they are true of, and what is proven in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from placeopt.edits.completions import Of, Unread, truth
from placeopt.errors import BadInput
from placeopt.model.base import LongName, Record
from placeopt.readable import of_reading

A = TypeVar("A", bound="Answer")
UNCERTIFIED = "not certified: no other program can check these proofs"


class Answer(Record):
    """An answer about a cluster, or about what was read of it; plans alone have certificates."""

    of: Of = "cluster"
    """Whether what is proven is true of the cluster, whatever was not read, or only of what was read."""
    unread: tuple[LongName, ...] = ()
    """Of a reading: jobs and nodes that were not read and could change the answer."""

    def about(self, said: str) -> str:
        """Return what is said, and of what."""
        return f"{said}; {of_reading(self.unread)}" if self.of == "reading" else said

    def proof(self, said: str) -> str:
        """Return what is proven, of what, and that no certificate shows it."""
        return f"{self.about(said)}; {UNCERTIFIED}"


def true_of(answer: A, unread: Unread, again: Callable[[], A], key: Callable[[A], object]) -> A:
    """
    Return an answer with what it is true of.

    ``again`` gives that about the freest completion; where it raises `BadInput`, that has none.
    """

    def same() -> bool:
        try:
            return key(again()) == key(answer)
        except BadInput:
            return False

    of, names = truth(unread, same)
    return answer.model_copy(update={"of": of, "unread": names})
