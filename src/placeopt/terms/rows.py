"""Rows collected one by one and added to a model at once."""

from __future__ import annotations

import numpy as np

from placeopt.linear import ModelBuilder
from placeopt.problem import IntArray


class Rows:
    """
    Rows collected one by one and added to a model at once, which is what the builder is fast at.

    Collecting may take long, so the clock is asked at every row: ``OutOfTime`` where the builder's deadline has passed.
    """

    def __init__(self, builder: ModelBuilder) -> None:
        self._builder = builder
        self._columns: list[int] = []
        self._coefficients: list[int] = []
        self._lengths: list[int] = []
        self._lower: list[int] = []
        self._upper: list[int] = []

    def add(self, columns: list[int], coefficients: list[int], lower: int, upper: int) -> None:
        """Add ``lower <= coefficients . columns <= upper``."""
        self._builder.check_time()
        self._columns.extend(columns)
        self._coefficients.extend(coefficients)
        self._lengths.append(len(columns))
        self._lower.append(lower)
        self._upper.append(upper)

    def hand_over(self, raised: IntArray | None = None, least: IntArray | int = 0) -> None:
        """Hand everything over; ``raised`` are columns that are to be what these rows ask for, or ``least`` if more."""
        row = np.repeat(np.arange(len(self._lengths)), self._lengths)
        columns, coefficients = np.array(self._columns, dtype=np.int64), np.array(self._coefficients, dtype=np.int64)
        lower, upper = np.array(self._lower, dtype=np.int64), np.array(self._upper, dtype=np.int64)
        self._builder.add_rows(row, columns, coefficients, lower, upper)
        if raised is not None:
            self._builder.define(raised, _Raised(raised, least, row, columns, coefficients, lower))


class _Raised:
    """The least values of columns, from ``least`` on, under rows in which one of them stands with the coefficient 1."""

    def __init__(
        self,
        raised: IntArray,
        least: IntArray | int,
        row: IntArray,
        columns: IntArray,
        coefficients: IntArray,
        lower: IntArray,
    ) -> None:
        position = np.full(int(max(columns.max(initial=-1), raised.max(initial=-1))) + 1, -1, dtype=np.int64)
        position[raised] = np.arange(len(raised))
        at = position[columns]
        self._raised = np.full(len(lower), -1, dtype=np.int64)
        self._raised[row[at >= 0]] = at[at >= 0]
        self._least, self._lower = np.broadcast_to(np.asarray(least, dtype=np.int64), len(raised)), lower
        self._row, self._columns, self._coefficients = (a[at < 0] for a in (row, columns, coefficients))

    def __call__(self, values: IntArray) -> IntArray:
        """Values of the raised columns."""
        need = self._lower.copy()
        np.subtract.at(need, self._row, self._coefficients * values[self._columns])
        out = self._least.copy()
        rows = self._raised >= 0
        np.maximum.at(out, self._raised[rows], need[rows])
        return out
