"""
What the driver writes into a job's admin comment: Slurm is its journal.

A JSON object after the mark ``placeopt/1``; what others have written before it stays. A note names its job, since tasks
of an array inherit the comment of the whole array.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from itertools import groupby
from typing import Annotated, Literal

from pydantic import BeforeValidator, ConfigDict, Field, PlainSerializer, TypeAdapter, ValidationError
from pydantic.dataclasses import dataclass

NoteKind = Literal["hold", "start", "stop", "wait", "given-up"]
MARK = "placeopt/1"
STOPPED = "stopped"
"""Why a job waits that ran, and was requeued under a hold for others."""
SEPARATOR = " | "
_NOTE = re.compile(rf"(?:\A|{re.escape(SEPARATOR)}){re.escape(MARK)} (\{{[^|]*\}})\Z")
_RUN = re.compile(r"([^\s|,*]+)(?:\*([0-9]{1,6}))?")
MAX_WORKERS = 100_000

Count = Annotated[int, Field(ge=0, le=2**53)]


def _packed(nodes: Iterable[str]) -> str:
    """Return ``g1*4,g2`` for four workers on g1, then one on g2."""
    runs = [(node, len(list(same))) for node, same in groupby(nodes)]
    return ",".join(node if count == 1 else f"{node}*{count}" for node, count in runs)


def _unpacked(text: object) -> object:
    """Return the node of each worker; what is not packed is left to the validation of the field."""
    if not isinstance(text, str):
        return text
    runs = [_RUN.fullmatch(word) for word in text.split(",")]
    counted = [(run[1], int(run[2] or 1)) for run in runs if run is not None]
    if len(counted) < len(runs) or sum(count for _, count in counted) > MAX_WORKERS:
        raise ValueError(text)
    return tuple(node for node, count in counted for _ in range(count))


@dataclass(frozen=True, config=ConfigDict(strict=True, extra="forbid"))
class Note:
    """
    What the driver has done with a job last.

    ``kind``: ``hold``: it has placed a user hold; ``start``: it has set the nodes and released the job, or was about
    to; ``stop``: it requeues it under a hold, or was about to; ``wait``: it has taken a start back; ``given-up``: so
    often that it leaves the job held. ``job``: Slurm's id. ``round``: Id of the round. ``plan``: Digest of its plan.
    ``at_s``: When, in seconds since 1970. ``nodes``: The node of each worker, by rank. ``restarts``: Slurm's count of
    restarts then. ``tries``: Starts that failed so far. ``retry_s``: Not to be started before, in seconds since 1970.
    ``was``: The job's own range of nodes, ``MIN-MAX``, MAX 0 for none; empty if it was not changed. ``required``: The
    job's own list of nodes, of a component those that it excludes. ``own_hold``: Whether the driver placed the hold.
    ``why``: Why it waits.
    """

    kind: NoteKind
    job: str
    round: str = ""
    plan: str = ""
    at_s: Count = 0
    nodes: Annotated[tuple[str, ...], BeforeValidator(_unpacked), PlainSerializer(_packed)] = ()
    restarts: Count = 0
    tries: Count = 0
    retry_s: Count = 0
    was: str = ""
    required: str = ""
    own_hold: bool = False
    why: str = ""

    def text(self) -> str:
        """Return the note on one line and without bars, which end notes; what is at its default is left out."""
        stated = json.dumps(_NOTES.dump_python(self, exclude_defaults=True), separators=(",", ":"))
        stated = stated.replace("|", "\\u007c")
        return f"{MARK} {stated}"


_NOTES = TypeAdapter(Note)


def read_note(comment: str) -> Note | None:
    """Return the note in a comment; None if there is none, or one that cannot be read."""
    found = _NOTE.search(comment)
    if found is None:
        return None
    try:
        return _NOTES.validate_json(found[1])
    except ValidationError:
        return None


def with_note(comment: str, note: Note) -> str:
    """Return a comment with the note in the place of an earlier one; what others have written stays before it."""
    others = _NOTE.sub("", comment)
    return f"{others}{SEPARATOR}{note.text()}" if others else note.text()


def host_list(nodes: Iterable[str]) -> str:
    """Return nodes, each once, as Slurm takes them: ``g[1-4],login``; no command could hold all names of a cluster."""
    runs: list[tuple[str, list[str]]] = []
    for name in dict.fromkeys(nodes):
        head = name.rstrip("0123456789")
        digits, (last_head, numbers) = name[len(head) :], runs[-1] if runs else ("", [""])
        follows = bool(digits and numbers[-1]) and int(digits) == int(numbers[-1]) + 1
        if follows and (head, len(digits)) == (last_head, len(numbers[-1])):
            numbers.append(digits)
        else:
            runs.append((head, [digits]))
    return ",".join(head + (f"[{first}-{rest[-1]}]" if rest else first) for head, (first, *rest) in runs)
