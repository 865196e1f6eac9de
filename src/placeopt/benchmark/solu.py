"""``.solu`` files: the best known value and bound of each instance, in the form solver people use."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from placeopt.arguments import checked
from placeopt.documents.files import check_lines, read_bytes, write_bytes
from placeopt.errors import BadInput

Number = int | float
"""A value of an objective: an integer where the model is one of integers, else a float."""

FIELDS = {"=opt=": ("value", "bound"), "=best=": ("value",), "=bound=": ("bound",)}
"""What each kind of line with a number states."""
INFEASIBLE, UNKNOWN = "=inf=", "=unkn="
"""Lines without a number: there is no solution; nothing is known."""

COST = ".cost"
"""Ending of the name under which the file states the cost of a round, at the proven optimum of its value."""
MAX_DIGITS = 40
"""Longest number that is read; integers stay below 2^53."""
TOLERANCE = 1e-6
"""Difference of two values, relative to the larger of them and 1, up to which they are equal; none for integers."""


def is_equal(one: Number, other: Number) -> bool:
    """Return whether two values are equal: two integers exactly, others within `TOLERANCE`."""
    if isinstance(one, int) and isinstance(other, int):
        return one == other
    return abs(one - other) <= TOLERANCE * max(1.0, abs(one), abs(other))


@dataclass(frozen=True)
class Known:
    """Best value found and best bound proven; None while unknown. The file does not state the sense."""

    value: Number | None = None
    bound: Number | None = None
    value_by: str = field(default="", compare=False)
    bound_by: str = field(default="", compare=False)
    """Sources of the figures; a comment at the end of the line."""
    infeasible: bool = False
    """Whether there is no solution."""

    @property
    def optimal(self) -> bool:
        """Whether the two meet."""
        return self.value is not None and self.bound is not None and is_equal(self.value, self.bound)

    def improved(
        self, value: Number | None, bound: Number | None, sense: Literal["max", "min"] = "max", by: str = ""
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
        best_value, best_bound = _kept(best_value, self.value), _kept(best_bound, self.bound)
        new = replace(
            self,
            value=best_value,
            bound=best_bound,
            value_by=by if _is_news(best_value, self.value, value, self.value_by) else self.value_by,
            bound_by=by if _is_news(best_bound, self.bound, bound, self.bound_by) else self.bound_by,
        )
        if new.infeasible and new.value is not None:
            raise BadInput(f"value {new.value} of a model called infeasible: one of them is wrong; find out which")
        if new.value is None or new.bound is None or new.optimal:
            return new
        if best(new.value, new.bound) != new.bound:
            lies = "above" if sense == "max" else "below"
            raise BadInput(f"value {new.value} lies {lies} bound {new.bound}: one of them is wrong; find out which")
        return new


def _kept(best: Number | None, before: Number | None) -> Number | None:
    """Return the figure known before where the best one is equal to it."""
    return before if before is not None and best is not None and is_equal(best, before) else best


def _is_news(best: Number | None, before: Number | None, new: Number | None, before_by: str) -> bool:
    """Return whether the best figure is credited to the new source."""
    return best != before or (not before_by and new is not None and new == best)


@checked
def read_solu(path: Path) -> dict[str, Known]:
    """
    Read ``=opt= name value``, ``=best= name value`` and ``=bound= name value`` lines; an absent file is empty.

    ``=inf= name``: infeasible; ``=unkn= name``: nothing is known. A value with a point or an exponent is a float. The
    text after ``#`` names the source. Raises `BadInput` if a line is none of these, or repeats a figure.
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
        if len(words) == 2 and words[0] in (INFEASIBLE, UNKNOWN):
            if words[1] in out:
                raise BadInput(f"{path}:{number}: {words[1]!r} appears twice; keep one line of it")
            infeasible = words[0] == INFEASIBLE
            out[words[1]] = Known(infeasible=infeasible, bound_by=by.strip())
            continue
        value = _number(words[2]) if len(words) == 3 and words[0] in FIELDS else None
        if value is None:
            raise BadInput(
                f"{path}:{number}: {line[:80]!r}, expected '=opt=', '=best=' or '=bound=', a name and a number, or "
                f"'{INFEASIBLE}' or '{UNKNOWN}' and a name"
            )
        tag, name = words[:2]
        known = out.get(name, Known())
        if known.infeasible:
            raise BadInput(f"{path}:{number}: {name!r} has a value, but is called infeasible above")
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
        if entry.infeasible or (entry.value is None and entry.bound is None):
            lines.append(f"{INFEASIBLE if entry.infeasible else UNKNOWN} {name}{_comment(entry.bound_by)}")
            continue
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


def _number(word: str) -> Number | None:
    """Return the number that a word is; None if it is none, or not finite."""
    if len(word) > MAX_DIGITS or not word.isascii():
        return None
    if word.removeprefix("-").isdecimal():
        return int(word)
    try:
        value = float(word)
    except ValueError:
        return None
    return value if math.isfinite(value) and "_" not in word else None
