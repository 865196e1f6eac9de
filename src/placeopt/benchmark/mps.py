"""Mixed-integer linear models in MPS files, free or fixed format."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from math import ceil, floor, inf, lcm

import numpy as np

from placeopt.benchmark.mixed_model import MixedModel
from placeopt.errors import BadInput, Unsupported
from placeopt.linear import MAX_EXACT, NO_LOWER, NO_UPPER, LinearModel, ModelBuilder

SECTIONS = ("ROWS", "COLUMNS", "RHS", "RANGES", "BOUNDS", "OBJSENSE", "NAME", "ENDATA")
SENSES = {"MAX": "max", "MAXIMIZE": "max", "MIN": "min", "MINIMIZE": "min"}
BOUNDS_WITHOUT_VALUE = ("FR", "MI", "PL", "BV")
BOUNDS = ("LO", "UP", "FX", "LI", "UI", *BOUNDS_WITHOUT_VALUE)
REFUSED = {
    **dict.fromkeys(("SOS", "SOS1", "SOS2", "SETS"), "special ordered sets"),
    **dict.fromkeys(("QUADOBJ", "QMATRIX", "QSECTION"), "a quadratic objective"),
    "QCMATRIX": "quadratic constraints",
    "CSECTION": "cones",
    "INDICATORS": "indicator constraints",
    "GENCONS": "general constraints",
    "PWLOBJ": "a piecewise linear objective",
    **dict.fromkeys(("LAZYCONS", "USERCUTS"), "lazy constraints and cuts"),
}
"""Sections beyond mixed-integer linear models."""
SEMICONTINUOUS = ("SC", "SI")
INFINITE = Decimal(10) ** 20
"""A bound of this size or more means that there is none, as most writers of MPS use it."""
LARGEST, SMALLEST = 30, -30
"""Powers of ten between which numbers are read."""


def mps_model(text: str, source: str = "document") -> LinearModel | MixedModel:
    """
    Return the model of an MPS text: in integers where `placeopt.linear` can state it, else in floating point.

    The first has bounded integer variables and an integral objective; a row with decimals is scaled until all its
    coefficients are integer. Fields are separated by blanks, so names hold none (in either format). As in other
    readers, an integer variable without bounds is binary, a negative range of an equation goes downwards, a negative
    upper bound of a variable without a lower one removes the lower bound 0, and the constant of the objective is the
    negative of its right-hand side. Free rows after the first are ignored. Raises `BadInput` with line and word, and
    `Unsupported` for sections and bounds beyond mixed-integer linear models.
    """
    reader = _Reader(source)
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.startswith("*"):
            reader.number = number
            if not reader.take(line):
                break
    else:
        raise BadInput(f"{source}: no ENDATA; is the file cut off?")
    try:
        return reader.integer_model()
    except Unsupported as error:
        return reader.mixed_model(str(error))


@dataclass
class _Column:
    """A variable: whether its bounds were stated, and its entries by row."""

    integer: bool
    entries: dict[str, Fraction] = field(default_factory=dict)
    lower: Fraction = Fraction(0)
    upper: Fraction | None = None
    bounded: bool = False
    free_below: bool = False


class _Reader:
    """Parser of the lines, section by section."""

    def __init__(self, source: str) -> None:
        self.number = 0
        self._source = source
        self._section = ""
        self._integer = False
        self._sense = "min"
        self._objective: str | None = None
        self._kinds: dict[str, str] = {}
        self._columns: dict[str, _Column] = {}
        self._sides: dict[str, Fraction] = {}
        self._ranges: dict[str, Fraction] = {}

    def take(self, line: str) -> bool:
        """Parse a line; return False after the last."""
        words = line.split()
        if not line[0].isspace():
            section = words[0].upper()
            if section in REFUSED:
                raise Unsupported(f"{self._source}:{self.number}: {REFUSED[section]} ({section}); linear models only")
            if section not in SECTIONS:
                raise self._fault(f"section {words[0]!r}, expected one of {', '.join(SECTIONS)}")
            self._section = section
            if section == "OBJSENSE" and len(words) > 1:
                self._objsense(words[1:])
            return section != "ENDATA"
        handlers = {
            "OBJSENSE": self._objsense,
            "ROWS": self._row,
            "COLUMNS": self._column,
            "RHS": self._side,
            "RANGES": self._range,
            "BOUNDS": self._bound,
        }
        if self._section not in handlers:
            raise self._fault("data before a section")
        handlers[self._section](words)
        return True

    def integer_model(self) -> LinearModel:
        """Return the model in integers; raises `Unsupported` if it cannot be stated so."""
        objective, names, entries = self._sorted()
        builder = ModelBuilder()
        lower, upper = zip(*(self._limits(name) for name in names), strict=True) if names else ((), ())
        builder.add_variables(list(lower), list(upper))
        rows, columns, coefficients, low, high = [], [], [], [], []
        constraints = [row for row, kind in self._kinds.items() if kind != "N"]
        for i, row in enumerate(constraints):
            bottom, top = self._row_limits(row)
            scale = _scale([*(value for _, value in entries[row]), *(v for v in (bottom, top) if v is not None)])
            rows += [i] * len(entries[row])
            columns += [j for j, _ in entries[row]]
            coefficients += [self._whole(value * scale, row) for _, value in entries[row]]
            low.append(NO_LOWER if bottom is None else self._whole(bottom * scale, row))
            high.append(NO_UPPER if top is None else self._whole(top * scale, row))
        if constraints:
            builder.add_rows(rows, columns, coefficients, low, high)
        priced, constant = entries[objective], self._constant(objective)
        if _scale([constant, *(value for _, value in priced)]) != 1:
            raise Unsupported(f"{self._source}: the objective has decimals; multiply it until all are integers")
        builder.set_objective(
            [j for j, _ in priced],
            [self._whole(value, objective) for _, value in priced],
            "max" if self._sense == "max" else "min",
            self._whole(constant, objective),
        )
        return builder.build()

    def mixed_model(self, reason: str) -> MixedModel:
        """Return the model in floating point; ``reason``: why not in integers."""
        objective, names, entries = self._sorted()
        constraints = [row for row, kind in self._kinds.items() if kind != "N"]
        limits = [self._row_limits(row) for row in constraints]
        bounds = [self._bounds(self._columns[name]) for name in names]
        cost = np.zeros(len(names))
        for j, value in entries[objective]:
            cost[j] = float(value)
        return MixedModel(
            lower=np.array([-inf if low is None else float(low) for low, _ in bounds]),
            upper=np.array([inf if high is None else float(high) for _, high in bounds]),
            integer=np.array([self._columns[name].integer for name in names], dtype=np.bool_),
            row_start=np.cumsum([0, *(len(entries[row]) for row in constraints)], dtype=np.int64),
            columns=np.array([j for row in constraints for j, _ in entries[row]], dtype=np.int64),
            coefficients=np.array([float(value) for row in constraints for _, value in entries[row]]),
            row_lower=np.array([-inf if low is None else float(low) for low, _ in limits]),
            row_upper=np.array([inf if high is None else float(high) for _, high in limits]),
            objective=cost,
            offset=float(self._constant(objective)),
            sense="max" if self._sense == "max" else "min",
            reason=reason,
        )

    def _sorted(self) -> tuple[str, list[str], dict[str, list[tuple[int, Fraction]]]]:
        """Return the objective's row, the names of the columns, and by row its columns and coefficients."""
        if self._objective is None:
            raise BadInput(f"{self._source}: no free row, so no objective")
        names = list(self._columns)
        entries: dict[str, list[tuple[int, Fraction]]] = {row: [] for row in self._kinds}
        for j, name in enumerate(names):
            for row, value in self._columns[name].entries.items():
                entries[row].append((j, value))
        return self._objective, names, entries

    def _constant(self, objective: str) -> Fraction:
        return -self._sides.get(objective, Fraction(0))

    def _objsense(self, words: list[str]) -> None:
        sense = SENSES.get(words[0].upper())
        if sense is None:
            raise self._fault(f"sense {words[0]!r}, expected MAX or MIN")
        self._sense = sense

    def _row(self, words: list[str]) -> None:
        if len(words) != 2 or words[0].upper() not in "NLGE" or len(words[0]) != 1:
            raise self._fault("expected N, L, G or E and a name")
        kind, name = words[0].upper(), words[1]
        if name in self._kinds:
            raise self._fault(f"row {name!r} appears twice")
        self._kinds[name] = kind
        if kind == "N" and self._objective is None:
            self._objective = name

    def _column(self, words: list[str]) -> None:
        if len(words) >= 3 and words[1].strip("'").upper() == "MARKER":
            marker = words[2].strip("'").upper()
            if marker not in ("INTORG", "INTEND"):
                raise Unsupported(f"{self._source}:{self.number}: marker {marker}; special ordered sets are not read")
            self._integer = marker == "INTORG"
            return
        column = self._columns.setdefault(words[0], _Column(self._integer))
        for row, value in self._pairs(words[1:]):
            if row in column.entries:
                raise self._fault(f"column {words[0]!r} has two entries in row {row!r}")
            column.entries[row] = value

    def _side(self, words: list[str]) -> None:
        self._sides.update(self._pairs(words[len(words) % 2 :]))  # the name of the set may be left out

    def _range(self, words: list[str]) -> None:
        self._ranges.update(self._pairs(words[len(words) % 2 :]))

    def _bound(self, words: list[str]) -> None:
        kind = words[0].upper()
        if kind in SEMICONTINUOUS:
            raise Unsupported(f"{self._source}:{self.number}: a semicontinuous variable ({kind})")
        if kind not in BOUNDS:
            raise self._fault(f"bound {words[0]!r}, expected one of {', '.join(BOUNDS)}")
        valued = kind not in BOUNDS_WITHOUT_VALUE
        if not 2 + valued <= len(words) <= 4:
            raise self._fault("expected a kind of bound, a set, a variable and a value")
        names_set = len(words) > 2 + valued  # the name of the set may be left out
        name = words[1 + names_set]
        column = self._columns.get(name)
        if column is None:
            raise self._fault(f"bound of {name!r}, which is not a column")
        column.bounded = True
        column.integer = column.integer or kind in ("BV", "LI", "UI")
        value = self._limit(words[2 + names_set], kind) if valued else None
        if kind in ("LO", "LI", "FX"):
            column.lower, column.free_below = value or Fraction(0), value is None
        if kind in ("UP", "UI", "FX"):
            column.upper = value
            column.free_below = column.free_below or (value is not None and value < column.lower == 0 and kind != "FX")
        if kind == "BV":
            column.lower, column.upper = Fraction(0), Fraction(1)
        if kind in ("FR", "MI"):
            column.free_below = True

    def _pairs(self, words: list[str]) -> list[tuple[str, Fraction]]:
        if len(words) % 2 or not words:
            raise self._fault("expected pairs of a row and a number")
        pairs = [(words[i], self._number(words[i + 1])) for i in range(0, len(words), 2)]
        for row, _ in pairs:
            if row not in self._kinds:
                raise self._fault(f"no row {row!r} in ROWS")
        return pairs

    def _limit(self, word: str, kind: str) -> Fraction | None:
        """Return a bound; None if it stands for infinity."""
        with contextlib.suppress(InvalidOperation):
            value = Decimal(word)
            if not value.is_nan() and abs(value) >= INFINITE:
                if kind == "FX" or (value < 0) != (kind in ("LO", "LI")):
                    raise self._fault(f"bound {kind} of {word[:40]}: no value is left")
                return None
        return self._number(word)

    def _number(self, word: str) -> Fraction:
        try:
            value = Decimal(word)
        except InvalidOperation:
            raise self._fault(f"{word[:40]!r} is not a number") from None
        if not value.is_finite() or len(word) > 40 or (value and not SMALLEST <= value.adjusted() <= LARGEST):
            raise self._fault(f"{word[:40]!r}: a number beyond 10^{LARGEST}, or below 10^{SMALLEST}")
        return Fraction(value)

    @staticmethod
    def _bounds(column: _Column) -> tuple[Fraction | None, Fraction | None]:
        """Return the bounds of a variable; None: none."""
        upper = Fraction(1) if column.integer and not column.bounded else column.upper
        return (None if column.free_below else column.lower), upper

    def _limits(self, name: str) -> tuple[int, int]:
        column = self._columns[name]
        if not column.integer:
            raise Unsupported(f"{self._source}: variable {name!r} is continuous; all variables must be integer")
        lower, upper = self._bounds(column)
        if lower is None or upper is None:
            raise Unsupported(f"{self._source}: variable {name!r} is unbounded; state its bounds under BOUNDS")
        return ceil(lower), floor(upper)

    def _row_limits(self, row: str) -> tuple[Fraction | None, Fraction | None]:
        side, span, kind = self._sides.get(row, Fraction(0)), self._ranges.get(row), self._kinds[row]
        if kind == "E":
            return (side + min(span or Fraction(0), Fraction(0)), side + max(span or Fraction(0), Fraction(0)))
        if abs(side) >= INFINITE and (side > 0) == (kind == "L"):  # no side at all
            return None, None
        if kind == "L":
            return (None if span is None else side - abs(span), side)
        return (side, None if span is None else side + abs(span))

    def _whole(self, value: Fraction, row: str) -> int:
        if abs(value) > MAX_EXACT:
            raise Unsupported(f"{self._source}: row {row!r} needs numbers beyond 2**53; use coarser units")
        return int(value)

    def _fault(self, message: str) -> BadInput:
        return BadInput(f"{self._source}:{self.number}: {message}")


def _scale(values: list[Fraction]) -> int:
    """Return the least integer that makes all values whole."""
    return lcm(*(value.denominator for value in values), 1)
