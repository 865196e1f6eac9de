"""``.solu`` files: the best known value and bound of each instance, in the form solver people use."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from placeopt.errors import BadInput
from placeopt.formats.files import write_bytes


@dataclass(frozen=True)
class Known:
    """Best value found and best bound proven, to be maximised; None while unknown."""

    value: int | None = None
    bound: int | None = None

    @property
    def optimal(self) -> bool:
        """Whether the two meet."""
        return self.value is not None and self.value == self.bound

    def improved(self, value: int | None, bound: int | None) -> Known:
        """
        Return the better of what is known and what is new.

        Raises
        ------
        BadInput
            If a value lies above a bound: one of the two is wrong.
        """
        values = [v for v in (self.value, value) if v is not None]
        bounds = [b for b in (self.bound, bound) if b is not None]
        new = Known(max(values, default=None), min(bounds, default=None))
        if new.value is not None and new.bound is not None and new.value > new.bound:
            raise BadInput(f"value {new.value} lies above bound {new.bound}: one of them is wrong; find out which")
        return new


def read_solu(path: Path) -> dict[str, Known]:
    """
    Read ``=opt= name value``, ``=best= name value`` and ``=bound= name value`` lines; an absent file is empty.

    Raises
    ------
    BadInput
        If a line is none of these.
    """
    out: dict[str, Known] = {}
    if not path.exists():
        return out
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        words = line.split()
        if not words:
            continue
        if len(words) != 3 or words[0] not in ("=opt=", "=best=", "=bound=") or not words[2].isdecimal():
            raise BadInput(f"{path}:{number}: {line!r}, expected '=opt=', '=best=' or '=bound=', a name and an integer")
        tag, name, value = words[0], words[1], int(words[2])
        known = out.get(name, Known())
        out[name] = known.improved(value if tag != "=bound=" else None, value if tag != "=best=" else None)
    return out


def write_solu(path: Path, known: dict[str, Known]) -> None:
    """Write the file whole, sorted by name."""
    lines = []
    for name, entry in sorted(known.items()):
        if entry.optimal:
            lines.append(f"=opt= {name} {entry.value}")
            continue
        if entry.value is not None:
            lines.append(f"=best= {name} {entry.value}")
        if entry.bound is not None:
            lines.append(f"=bound= {name} {entry.bound}")
    write_bytes(path, "".join(f"{line}\n" for line in lines).encode())
