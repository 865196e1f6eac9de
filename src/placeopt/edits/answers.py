"""Answers about a cluster of which not all may have been read: what they are true of, and what is proven in them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from placeopt.edits.completions import Of, Unread, truth
from placeopt.model.base import LongName, Uncertified
from placeopt.readable import of_reading

A = TypeVar("A", bound="Answer")
UNCERTIFIED = "not certified: no other program can check these proofs"


class Answer(Uncertified):
    """An answer about a cluster, or about what was read of it."""

    of: Of = "cluster"
    """Whether what is proven is true of the cluster, whatever was not read, or only of what was read."""
    unread: tuple[LongName, ...] = ()
    """Of a reading: jobs and nodes that were not read and could change the answer."""

    def proof(self, said: str) -> str:
        """Return what is proven, of what, and that no certificate shows it."""
        reading = (of_reading(self.unread),) if self.of == "reading" else ()
        return "; ".join((said, *reading, UNCERTIFIED))


def true_of(answer: A, unread: Unread, again: Callable[[], A], key: Callable[[A], object]) -> A:
    """Return an answer with what it is true of; ``again`` gives that about the freest completion."""
    of, names = truth(unread, lambda: key(again()) == key(answer))
    return answer.model_copy(update={"of": of, "unread": names})
