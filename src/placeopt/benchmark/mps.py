"""
Mixed-integer linear models from MPS files.

HiGHS's own reader is another way, and reads less: 1.14 refuses ``$`` comments, and it takes ``two`` for 0, a misspelt
sense for a minimum, and a bound of what is no column for one more column, all without a word.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import ceil, floor, inf, isfinite, lcm

import numpy as np

from placeopt.benchmark.mps_lines import INFINITE, Limit, MpsColumn, MpsLines
from placeopt.errors import Unsupported
from placeopt.linear import MAX_EXACT, NO_LOWER, NO_UPPER, LinearModel, ModelBuilder, Sense
from placeopt.solvers.mixed import FloatArray, MixedModel


def mps_model(text: str, source: str = "document") -> LinearModel | MixedModel:
    """
    Return the model of an MPS text: in integers where `placeopt.linear` can state it, else in floating point.

    The first has bounded integer variables and an integral objective; a row with decimals is scaled until all its
    coefficients are integer. As in other readers, a negative range of an equation goes downwards, and the constant of
    the objective is the negative of its right-hand side. Free rows after the first are ignored.

    Raises
    ------
    BadInput, Unsupported
        As `MpsLines` says.
    """
    model = _Model(MpsLines(text, source), source)
    try:
        return model.in_integers()
    except Unsupported as error:
        return model.in_floats(str(error))


class _Model:
    """The rows of an MPS file but the free ones, its columns by their position, and the first free row as objective."""

    def __init__(self, lines: MpsLines, source: str) -> None:
        goal = next(row for row, kind in lines.kinds.items() if kind == "N")
        rows = [row for row, kind in lines.kinds.items() if kind != "N"]
        place, columns = {row: i for i, row in enumerate(rows)}, lines.columns.values()
        self._source, self._columns = source, lines.columns
        self._sense: Sense = "max" if lines.sense == "max" else "min"
        self._sides = [_sides(lines.kinds[row], lines.rhs.get(row), lines.ranges.get(row)) for row in rows]
        self._costs = [column.entries.get(goal, Fraction(0)) for column in columns]
        self._constant = -lines.rhs.get(goal, Fraction(0))
        self._entries = sorted(
            (place[row], j, value)
            for j, column in enumerate(columns)
            for row, value in column.entries.items()
            if row in place
        )

    def in_integers(self) -> LinearModel:
        """Return the model in integers; raises `Unsupported` if it cannot be stated so."""
        bounds = [self._whole_bounds(name, column) for name, column in self._columns.items()]
        scales = [lcm(*(limit.denominator for limit in of if isinstance(limit, Fraction)), 1) for of in self._sides]
        for i, _, value in self._entries:
            scales[i] = lcm(scales[i], value.denominator)
        builder = ModelBuilder()
        builder.add_variables([low for low, _ in bounds], [high for _, high in bounds])
        if scales:
            scaled = list(zip(self._sides, scales, strict=True))
            builder.add_rows(
                [i for i, _, _ in self._entries],
                [j for _, j, _ in self._entries],
                [self._whole(value * scales[i]) for i, _, value in self._entries],
                [NO_LOWER if low == -inf else self._whole(low * scale) for (low, _), scale in scaled],
                [NO_UPPER if high == inf else self._whole(high * scale) for (_, high), scale in scaled],
            )
        if any(value.denominator != 1 for value in (self._constant, *self._costs)):
            raise Unsupported(f"{self._source}: the objective has decimals; multiply it until all are integers")
        costs = [self._whole(value) for value in self._costs]
        builder.set_objective(range(len(costs)), costs, self._sense, self._whole(self._constant))
        return builder.build()

    def in_floats(self, reason: str) -> MixedModel:
        """Return the model in floating point; ``reason``: why not in integers."""
        bounds, sides = _floats(column.bounds for column in self._columns.values()), _floats(self._sides)
        return MixedModel(
            lower=bounds[:, 0],
            upper=bounds[:, 1],
            integer=np.array([column.integer for column in self._columns.values()], dtype=np.bool_),
            row_start=np.searchsorted([i for i, _, _ in self._entries], np.arange(len(sides) + 1)),
            columns=np.array([j for _, j, _ in self._entries], dtype=np.int64),
            coefficients=np.array([value for _, _, value in self._entries], dtype=np.float64),
            row_lower=sides[:, 0],
            row_upper=sides[:, 1],
            objective=np.array(self._costs, dtype=np.float64),
            offset=float(self._constant),
            sense=self._sense,
            reason=reason,
        )

    def _whole_bounds(self, name: str, column: MpsColumn) -> tuple[int, int]:
        if not column.integer:
            raise Unsupported(f"{self._source}: variable {name!r} is continuous; all variables must be integer")
        lower, upper = column.bounds
        if not (isfinite(lower) and isfinite(upper)):
            raise Unsupported(f"{self._source}: variable {name!r} is unbounded; state its bounds under BOUNDS")
        return ceil(lower), floor(upper)

    def _whole(self, value: Limit) -> int:
        if not -MAX_EXACT <= value <= MAX_EXACT:
            raise Unsupported(f"{self._source}: a row needs numbers beyond 2**53; use coarser units")
        return int(value)


def _sides(kind: str, rhs: Fraction | None, span: Fraction | None) -> tuple[Limit, Limit]:
    """Return the least and the largest value of a row."""
    side = rhs or Fraction(0)
    if kind == "E":
        return side + min(span or Fraction(0), Fraction(0)), side + max(span or Fraction(0), Fraction(0))
    if abs(side) >= INFINITE and (side > 0) == (kind == "L"):  # no side at all
        return -inf, inf
    if kind == "L":
        return (-inf if span is None else side - abs(span)), side
    return side, (inf if span is None else side + abs(span))


def _floats(pairs: Iterable[tuple[Limit, Limit]]) -> FloatArray:
    """Return pairs of limits, shape ``(k, 2)``."""
    return np.array(list(pairs), dtype=np.float64).reshape(-1, 2)
