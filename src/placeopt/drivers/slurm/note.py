"""
What the driver writes into a job's admin comment: Slurm is its journal.

One line of words after the mark ``placeopt/1``; what others have written before it stays. A note names its job, since
tasks of an array inherit the comment of the whole array.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, fields
from itertools import groupby
from typing import Any, Literal, get_args

NoteKind = Literal["hold", "start", "stop", "wait", "given-up"]
MARK = "placeopt/1"
STOPPED = "stopped"
"""Why a job waits that ran, and was requeued under a hold for others."""
SEPARATOR = " | "
_NOTE = re.compile(rf"(?:\A|{re.escape(SEPARATOR)})({re.escape(MARK)}(?: [^|]*)?)\Z")
_WORD = re.compile(r"[^\s|]+\Z")
MAX_COUNT = 2**53
MAX_WORKERS = 100_000


@dataclass(frozen=True)
class Note:
    """
    What the driver has done with a job last.

    ``kind``: ``hold``: it has placed a user hold; ``start``: it has told the nodes and released the job, or was about
    to; ``stop``: it requeues it under a hold, or was about to; ``wait``: it has taken a start back; ``given-up``: so
    often that it leaves the job held. ``job``: Slurm's id. ``round``: Id of the round. ``plan``: Digest of its plan.
    ``at_s``: When, in seconds since 1970. ``nodes``: The node of each worker, by rank. ``restarts``: Slurm's count of
    restarts then. ``tries``: Starts that failed so far. ``retry_s``: Not to be started before, in seconds since 1970.
    ``was``: The job's own range of nodes, ``MIN-MAX``, MAX 0 for none; empty if it was not changed. ``required``: The
    job's own list of nodes, of a component those that it excludes. ``own_hold``: Whether the driver placed the hold.
    ``why``: Why it waits, one word.
    """

    kind: NoteKind
    job: str
    round: str = ""
    plan: str = ""
    at_s: int = 0
    nodes: tuple[str, ...] = ()
    restarts: int = 0
    tries: int = 0
    retry_s: int = 0
    was: str = ""
    required: str = ""
    own_hold: bool = False
    why: str = ""

    def text(self) -> str:
        """Return the note as words, without what is at its default."""
        words = [MARK, self.kind, f"job={self.job}"]
        given = {name: getattr(self, name) for name in _TEXTS + _COUNTS}
        words += [f"{name}={_one_word(str(value))}" for name, value in given.items() if value]
        if self.nodes:
            words.append(f"nodes={_packed(self.nodes)}")
        if self.own_hold:
            words.append("own_hold=1")
        return " ".join(words)


_TEXTS = ("round", "plan", "was", "required", "why")
_COUNTS = ("at_s", "restarts", "tries", "retry_s")
_KNOWN = {field.name for field in fields(Note)}


def read_note(comment: str) -> Note | None:
    """Return the note in a comment; None if there is none, or one that cannot be read."""
    found = _NOTE.search(comment)
    if found is None:
        return None
    words = found[1].split(" ")[1:]
    pairs = dict(word.split("=", 1) for word in words if "=" in word)
    if not words or words[0] not in get_args(NoteKind) or "job" not in pairs or not pairs.keys() <= _KNOWN:
        return None
    try:
        values: dict[str, Any] = {name: pairs[name] for name in _TEXTS if name in pairs}
        values |= {name: _count(pairs[name]) for name in _COUNTS if name in pairs}
        nodes = _unpacked(pairs.get("nodes", ""))
        kind: Any = words[0]
        return Note(kind=kind, job=pairs["job"], nodes=nodes, own_hold=pairs.get("own_hold") == "1", **values)
    except ValueError:
        return None


def with_note(comment: str, note: Note) -> str:
    """Return a comment with the note in the place of an earlier one; what others have written stays before it."""
    others = _NOTE.sub("", comment)
    return f"{others}{SEPARATOR}{note.text()}" if others else note.text()


def _one_word(text: str) -> str:
    return re.sub(r"[\s|]+", "_", text)


def _count(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,16}", text) or int(text) > MAX_COUNT:
        raise ValueError(text)
    return int(text)


def _packed(nodes: Iterable[str]) -> str:
    """Return ``g1*4,g2`` for four workers on g1, then one on g2."""
    runs = [(node, len(list(same))) for node, same in groupby(nodes)]
    return ",".join(node if count == 1 else f"{node}*{count}" for node, count in runs)


def _unpacked(text: str) -> tuple[str, ...]:
    nodes: list[str] = []
    for word in filter(None, text.split(",")):
        node, _, times = word.partition("*")
        count = _count(times) if times else 1
        if not _WORD.match(node) or count < 1 or count + len(nodes) > MAX_WORKERS:
            raise ValueError(word)
        nodes += [node] * count
    return tuple(nodes)


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
