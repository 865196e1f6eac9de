"""Slurm's generic resources as it prints them: ``gpu:a100:4(S:0-1)``, ``gres/gpu=4``, ``gpu:2(IDX:0,3)``."""

from __future__ import annotations

import re
from dataclasses import dataclass

_ITEM = re.compile(r"([^,()]+)((?:\([^()]*\))*)(?:,|\Z)")
_COUNT = re.compile(r"([0-9]{1,12})([KMGTP]?)\Z", re.IGNORECASE)
_SCALE = {sign: 1024**power for power, sign in enumerate(("", "K", "M", "G", "T", "P"))}
_NOTHING = ("", "(null)", "N/A", "none")


@dataclass(frozen=True)
class Gres:
    """One resource of a list: its name such as ``gpu`` or ``shard``, type, count, and what stands in parentheses."""

    name: str
    type: str | None
    count: int
    details: str = ""

    @property
    def indices(self) -> str | None:
        """The text of ``(IDX:...)``; None if it is absent or ``N/A``."""
        found = re.search(r"\(IDX:([0-9,\-]+)\)", self.details)
        return found[1] if found else None

    @property
    def socket(self) -> int | None:
        """The socket of ``(S:n)``; None where there is none, or several (``(S:0-1)``, ``(S:0,1)``)."""
        found = re.search(r"\(S:([0-9]{1,3})\)", self.details)
        return int(found[1]) if found else None


def parse_gres(text: str) -> list[Gres]:
    """
    Read a list of generic resources.

    Names, types and counts are separated by ``:`` or ``=``, with or without ``gres/`` or ``gres:`` before. One word
    after the name is the count if it is a number (``gpu:4``), as Slurm reads it, and the type otherwise (``gpu:a100``,
    one of them). Slurm 22.05 writes ``gpu:a100:4(S:0-1)``, ``gres:gpu:4``, ``gpu:a100:2(IDX:0,3)``, ``shard:t4:8``,
    ``gpu:0``; later versions ``gres/gpu:a100:4``, ``shard:a100:1(1/8,-/8)``, ``(CNT:2)``; nothing is an empty text or
    ``(null)``.

    Raises
    ------
    ValueError
        If an item cannot be read.
    """
    if text.strip() in _NOTHING:
        return []
    found, at = [], 0
    while at < len(text):
        item = _ITEM.match(text, at)
        if item is None:
            raise ValueError(f"{text[at : at + 60]!r}, expected such as gpu:a100:4")
        found.append(_gres(item[1].strip(), item[2]))
        at = item.end()
    return found


def _gres(body: str, details: str) -> Gres:
    words = re.split("[:=]", re.sub(r"\Agres[/:]", "", body))
    name, rest = words[0], words[1:]
    if rest and (count := _COUNT.match(rest[-1])):
        kind, number = rest[:-1], int(count[1]) * _SCALE[count[2].upper()]
    else:
        kind, number = rest, 1
    if not name or len(kind) > 1 or not all(rest):
        raise ValueError(f"{body[:60]!r}, expected such as gpu:a100:4")
    return Gres(name, kind[0] if kind else None, number, details)
