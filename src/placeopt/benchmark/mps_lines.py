"""The lines of an MPS file, free or fixed format: rows, columns, sides and bounds, in exact numbers."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from math import inf

from placeopt.errors import BadInput, Unsupported

Limit = Fraction | float
"""A bound or a side: a float where it is infinite."""
SECTIONS = ("ROWS", "COLUMNS", "RHS", "RANGES", "BOUNDS", "OBJSENSE", "NAME", "ENDATA")
BEYOND = (
    *("SOS", "SOS1", "SOS2", "SETS", "QUADOBJ", "QMATRIX", "QSECTION", "QCMATRIX", "CSECTION", "INDICATORS"),
    *("GENCONS", "PWLOBJ", "LAZYCONS", "USERCUTS"),
)
"""Sections beyond mixed-integer linear models: sets, quadratic parts, cones, indicators, general and lazy rows."""
SENSES = {"MAX": "max", "MAXIMIZE": "max", "MIN": "min", "MINIMIZE": "min"}
VALUED = ("LO", "UP", "FX", "LI", "UI")
BOUNDS_WITHOUT_VALUE: dict[str, tuple[Limit | None, Limit | None]] = {
    "FR": (-inf, inf),
    "MI": (-inf, None),
    "PL": (None, inf),
    "BV": (Fraction(0), Fraction(1)),
}
"""The bounds that each states; None: not that one."""
INFINITE = Decimal(10) ** 20
"""A bound of this size or more means that there is none, as most writers of MPS use it."""
LARGEST, SMALLEST = 30, -30
"""Powers of ten between which numbers are read."""
PULP_SENSE = "*SENSE:Maximize"
"""PuLP's comment above a maximum; to all other readers the model is a minimum."""


@dataclass
class MpsColumn:
    """A variable: its entries by row, and the bounds that are stated."""

    integer: bool
    entries: dict[str, Fraction] = field(default_factory=dict)
    lower: Limit | None = None
    upper: Limit | None = None

    @property
    def bounds(self) -> tuple[Limit, Limit]:
        """Both bounds: without any, an integer is binary; one below 0 alone removes the lower bound 0."""
        if self.lower is None and self.upper is None:
            return Fraction(0), Fraction(1) if self.integer else inf
        upper = inf if self.upper is None else self.upper
        return (-inf if upper < 0 else Fraction(0)) if self.lower is None else self.lower, upper


class MpsLines:
    """
    What the lines of an MPS text say.

    Fields are separated by blanks, so names hold none, in either format; from the third field on, one that begins with
    ``$`` begins a comment. The first set of right-hand sides and of ranges counts.

    - ``sense``: ``max`` or ``min``.
    - ``kinds``: Row -> ``N``, ``L``, ``G`` or ``E``.
    - ``columns``: Column by name, in the order of the file.
    - ``rhs``, ``ranges``: By row.

    Raises `BadInput` with line and word where the text is no such model, and `Unsupported` for sections and bounds
    beyond mixed-integer linear models.
    """

    def __init__(self, text: str, source: str) -> None:
        self.sense: str | None = None
        self.kinds: dict[str, str] = {}
        self.columns: dict[str, MpsColumn] = {}
        self.rhs: dict[str, Fraction] = {}
        self.ranges: dict[str, Fraction] = {}
        self._sets: dict[str, str] = {}
        self._source, self._number, self._section, self._is_integer = source, 0, "", False
        for self._number, line in enumerate(text.splitlines(), 1):
            words = _words(line)
            if words and not line.startswith("*") and not self._take(words, is_header=not line[0].isspace()):
                break
        else:
            raise BadInput(f"{source}: no ENDATA; is the file cut off?")
        if self.sense is None and PULP_SENSE in text:
            raise BadInput(f"{source}: {PULP_SENSE} is no part of MPS, which has a minimum; expected OBJSENSE")
        if "N" not in self.kinds.values():
            raise BadInput(f"{source}: no free row, so no objective")

    def _take(self, words: list[str], *, is_header: bool) -> bool:
        """Parse the words of a line; return False after the last."""
        if is_header:
            return self._header(words)
        handlers = {
            "OBJSENSE": self._objsense,
            "ROWS": self._row,
            "COLUMNS": self._column,
            "RHS": self._set,
            "RANGES": self._set,
            "BOUNDS": self._bound,
        }
        if self._section not in handlers:
            raise self._fault("data before a section")
        handlers[self._section](words)
        return True

    def _header(self, words: list[str]) -> bool:
        self._section = section = words[0].upper()
        if section in BEYOND:
            raise self._unsupported(f"section {section}")
        if section not in SECTIONS:
            raise self._fault(f"section {words[0]!r}, expected one of {', '.join(SECTIONS)}")
        if section == "OBJSENSE" and len(words) > 1:
            self._objsense(words[1:])
        return section != "ENDATA"

    def _objsense(self, words: list[str]) -> None:
        self.sense = SENSES.get(words[0].upper())
        if self.sense is None:
            raise self._fault(f"sense {words[0]!r}, expected MAX or MIN")

    def _row(self, words: list[str]) -> None:
        if len(words) != 2 or words[0].upper() not in ("N", "L", "G", "E"):
            raise self._fault("expected N, L, G or E and a name")
        if words[1] in self.kinds:
            raise self._fault(f"row {words[1]!r} appears twice")
        self.kinds[words[1]] = words[0].upper()

    def _column(self, words: list[str]) -> None:
        if len(words) >= 3 and words[1].strip("'").upper() == "MARKER":
            marker = words[2].strip("'").upper()
            if marker not in ("INTORG", "INTEND"):
                raise self._unsupported(f"marker {marker}")
            self._is_integer = marker == "INTORG"
            return
        column = self.columns.setdefault(words[0], MpsColumn(self._is_integer))
        for row, value in self._pairs(words[1:]):
            if row in column.entries:
                raise self._fault(f"column {words[0]!r} has two entries in row {row!r}")
            column.entries[row] = value

    def _set(self, words: list[str]) -> None:
        """Take right-hand sides or ranges; the name of their set may be left out."""
        name, pairs = words[0] if len(words) % 2 else "", self._pairs(words[len(words) % 2 :])
        if self._sets.setdefault(self._section, name) == name:
            (self.rhs if self._section == "RHS" else self.ranges).update(pairs)

    def _bound(self, words: list[str]) -> None:
        """Take a bound; the name of its set may be left out."""
        kind, is_valued = words[0].upper(), words[0].upper() in VALUED
        if kind in ("SC", "SI"):
            raise self._unsupported(f"a semicontinuous variable ({kind})")
        if not is_valued and kind not in BOUNDS_WITHOUT_VALUE:
            raise self._fault(f"bound {words[0]!r}, expected one of {', '.join((*VALUED, *BOUNDS_WITHOUT_VALUE))}")
        if not 2 + is_valued <= len(words) <= 4:
            raise self._fault("expected a kind of bound, a set, a variable and a value")
        names_set = len(words) > 2 + is_valued
        column = self.columns.get(words[1 + names_set])
        if column is None:
            raise self._fault(f"bound of {words[1 + names_set]!r}, which is not a column")
        if is_valued:
            value = self._limit(words[2 + names_set], kind)
            lower, upper = None if kind in ("UP", "UI") else value, None if kind in ("LO", "LI") else value
        else:
            lower, upper = BOUNDS_WITHOUT_VALUE[kind]
        column.integer = column.integer or kind in ("BV", "LI", "UI")
        column.lower = column.lower if lower is None else lower
        column.upper = column.upper if upper is None else upper

    def _pairs(self, words: list[str]) -> list[tuple[str, Fraction]]:
        if len(words) % 2 or not words:
            raise self._fault("expected pairs of a row and a number")
        for row in words[::2]:
            if row not in self.kinds:
                raise self._fault(f"no row {row!r} in ROWS")
        return [(row, self._fraction(word)) for row, word in zip(words[::2], words[1::2], strict=True)]

    def _limit(self, word: str, kind: str) -> Limit:
        value = self._decimal(word)
        if value.is_nan() or abs(value) < INFINITE:
            return self._fraction(word)
        if kind == "FX" or (value < 0) != (kind in ("LO", "LI")):
            raise self._fault(f"bound {kind} of {word[:40]}: no value is left")
        return -inf if value < 0 else inf

    def _fraction(self, word: str) -> Fraction:
        value = self._decimal(word)
        if not value.is_finite() or len(word) > 40 or (value and not SMALLEST <= value.adjusted() <= LARGEST):
            raise self._fault(f"{word[:40]!r}: a number beyond 10^{LARGEST}, or below 10^{SMALLEST}")
        return Fraction(value)

    def _decimal(self, word: str) -> Decimal:
        try:
            return Decimal(word)
        except InvalidOperation:
            raise self._fault(f"{word[:40]!r} is not a number") from None

    def _fault(self, message: str) -> BadInput:
        return BadInput(f"{self._source}:{self._number}: {message}")

    def _unsupported(self, what: str) -> Unsupported:
        return Unsupported(f"{self._source}:{self._number}: {what}, beyond mixed-integer linear models")


def _words(line: str) -> list[str]:
    words = line.split()
    comment = next((i for i, word in enumerate(words) if i > 1 and word.startswith("$")), len(words))
    return words[:comment]
