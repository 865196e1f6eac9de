"""``.solu`` files: the best known value and bound of each instance, in the form solver people use."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from placeopt.arguments import checked
from placeopt.errors import BadInput
from placeopt.formats.bounds import check_lines
from placeopt.formats.files import read_bytes, write_bytes

FIELDS = {"=opt=": ("value", "bound"), "=best=": ("value",), "=bound=": ("bound",)}
"""What each kind of line states."""


MAX_DIGITS = 40
"""Longest integer that is read; objectives stay below 2^53."""


@dataclass(frozen=True)
class Known:
    """Best value found and best bound proven; None while unknown. The file does not state the sense."""

    value: int | None = None
    bound: int | None = None
    value_by: str = field(default="", compare=False)
    bound_by: str = field(default="", compare=False)
    """Sources of the figures; a comment at the end of the line."""

    @property
    def optimal(self) -> bool:
        """Whether the two meet."""
        return self.value is not None and self.value == self.bound

    def improved(
        self, value: int | None, bound: int | None, sense: Literal["max", "min"] = "max", by: str = ""
    ) -> Known:
        """
        Return the better of the known and the new figures; with ``sense`` "max" larger values are better.

        ``by`` names the source of the new figures. It is recorded for a figure that improves, and for an equal one
        without a source. Raises `BadInput` if a value is better than a bound: one of the two is wrong.
        """
        best, least = (max, min) if sense == "max" else (min, max)
        values = [v for v in (self.value, value) if v is not None]
        bounds = [b for b in (self.bound, bound) if b is not None]
        best_value, best_bound = best(values, default=None), least(bounds, default=None)
        new = Known(
            best_value,
            best_bound,
            by if _is_news(best_value, self.value, value, self.value_by) else self.value_by,
            by if _is_news(best_bound, self.bound, bound, self.bound_by) else self.bound_by,
        )
        if new.value is not None and new.bound is not None and best(new.value, new.bound) != new.bound:
            lies = "above" if sense == "max" else "below"
            raise BadInput(f"value {new.value} lies {lies} bound {new.bound}: one of them is wrong; find out which")
        return new


def _is_news(best: int | None, before: int | None, new: int | None, before_by: str) -> bool:
    """Return whether the best figure is credited to the new source."""
    return best != before or (not before_by and new is not None and new == best)


@checked
def read_solu(path: Path) -> dict[str, Known]:
    """
    Read ``=opt= name value``, ``=best= name value`` and ``=bound= name value`` lines; an absent file is empty.

    The text after ``#`` names the source. Raises `BadInput` if a line is none of these, or repeats a figure.
    """
    out: dict[str, Known] = {}
    if not os.path.exists(path):
        return out
    text = read_bytes(path).decode(errors="replace")
    check_lines(text, str(path))
    for number, line in enumerate(text.splitlines(), 1):
        line, _, by = line.partition("#")
        words = line.split()
        if not words:
            continue
        if len(words) != 3 or words[0] not in FIELDS or not _is_integer(words[2]):
            raise BadInput(
                f"{path}:{number}: {line[:80]!r}, expected '=opt=', '=best=' or '=bound=', a name and an integer"
            )
        tag, name, value = words[0], words[1], int(words[2])
        known = out.get(name, Known())
        twice = [field for field in FIELDS[tag] if getattr(known, field) is not None]
        if twice:
            raise BadInput(f"{path}:{number}: the {twice[0]} of {name!r} appears twice; keep one line of it")
        figures: dict[str, Any] = dict.fromkeys(FIELDS[tag], value)
        figures |= {f"{field_of}_by": by.strip() for field_of in FIELDS[tag]}
        out[name] = replace(known, **figures)
    return out


def write_solu(path: Path, known: dict[str, Known]) -> None:
    """Write the file whole, sorted by name."""
    lines = []
    for name, entry in sorted(known.items()):
        if entry.optimal:
            both = dict.fromkeys(filter(None, (entry.value_by, entry.bound_by)))
            lines.append(f"=opt= {name} {entry.value}{_comment('; '.join(both))}")
            continue
        if entry.value is not None:
            lines.append(f"=best= {name} {entry.value}{_comment(entry.value_by)}")
        if entry.bound is not None:
            lines.append(f"=bound= {name} {entry.bound}{_comment(entry.bound_by)}")
    write_bytes(path, "".join(f"{line}\n" for line in lines).encode())


def _comment(by: str) -> str:
    return f"  # {by}" if by else ""


def _is_integer(word: str) -> bool:
    return len(word) <= MAX_DIGITS and word.removeprefix("-").isdecimal() and word.isascii()
