"""Prices on functions of sums of columns and on products of two, collected and added to a model at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placeopt.linear import NO_LOWER, NO_UPPER, ModelBuilder
from placeopt.problem import BoolArray, IntArray


class Prices:
    """
    A linear expression whose helper columns and rows are added in blocks.

    One call of the builder for each of ten thousand nodes and jobs costs minutes where one for all costs a second.
    """

    def __init__(self) -> None:
        self._columns: list[IntArray] = []
        self._coefficients: list[IntArray] = []
        self._counts: list[tuple[IntArray, IntArray]] = []
        self._both: list[tuple[IntArray, IntArray, IntArray]] = []

    def add(self, columns: IntArray, coefficients: IntArray) -> None:
        """Price columns as they are."""
        self._columns.append(columns)
        self._coefficients.append(coefficients)

    def add_count(self, columns: IntArray, price_of: IntArray) -> None:
        """Price the sum k of ``columns`` with ``price_of[k]``; it never exceeds the last, and 0 costs nothing."""
        if len(price_of) == 2:
            self.add(columns, np.full(len(columns), price_of[1], dtype=np.int64))
        elif price_of.any():
            self._counts.append((columns, price_of))

    def add_both(self, one: IntArray, other: IntArray, price: IntArray) -> None:
        """Price, each at ``price`` >= 0, the pairs of binary columns that are both 1."""
        self._both.append((one, other, price))

    def add_to(self, builder: ModelBuilder) -> tuple[IntArray, IntArray]:
        """Add helper columns and rows, and return columns and coefficients of the whole expression."""
        self._add_counts(builder)
        self._add_both(builder)
        nothing = np.zeros(0, dtype=np.int64)
        return np.concatenate([nothing, *self._columns]), np.concatenate([nothing, *self._coefficients])

    def _add_counts(self, builder: ModelBuilder) -> None:
        digits = unary_digits(builder, [(columns, len(price_of) - 1) for columns, price_of in self._counts])
        for columns, (_, price_of) in zip(digits, self._counts, strict=True):
            self.add(columns, np.diff(price_of))

    def _add_both(self, builder: ModelBuilder) -> None:
        """Columns that are at least 1 where both of a pair are."""
        if not self._both:
            return
        one, other, price = (np.concatenate(arrays) for arrays in zip(*self._both, strict=True))
        both = builder.add_variables(0, 1, count=len(price))
        row, ones = np.arange(len(price)), np.ones(len(price), dtype=np.int64)
        builder.add_rows(
            np.concatenate([row, row, row]),
            np.concatenate([one, other, both]),
            np.concatenate([ones, ones, -ones]),
            np.full(len(price), NO_LOWER, dtype=np.int64),
            ones,
        )
        builder.define(both, lambda values: values[one] * values[other])
        self.add(both, price)


def unary_digits(builder: ModelBuilder, sums: Sequence[tuple[IntArray, int]]) -> list[IntArray]:
    """
    Add binaries b_1 >= b_2 >= ... for every (columns, upper) of ``sums``, and return their columns for each.

    They add up to the sum of the columns, which is thereby confined to 0..upper. Any function f of it is then linear:
    f(0) + sum b_i (f(i) - f(i - 1)).
    """
    if not sums:
        return []
    size = np.array([upper for _, upper in sums], dtype=np.int64)
    digits = builder.add_variables(0, 1, count=int(size.sum()))
    row, length = np.arange(len(sums)), np.array([len(columns) for columns, _ in sums], dtype=np.int64)
    zero = np.zeros(len(sums), dtype=np.int64)
    builder.add_rows(  # as many digits are 1 as the sum says
        np.concatenate([np.repeat(row, length), np.repeat(row, size)]),
        np.concatenate([*(columns for columns, _ in sums), digits]),
        np.repeat(np.array([1, -1], dtype=np.int64), [int(length.sum()), len(digits)]),
        zero,
        zero,
    )
    members, owner = np.concatenate([columns for columns, _ in sums]), np.repeat(row, length)
    owner_of_digit = np.repeat(row, size)
    place = np.arange(len(digits)) - np.repeat(np.cumsum(size) - size, size)

    def first_ones(values: IntArray) -> BoolArray:
        total = np.zeros(len(sums), dtype=np.int64)
        np.add.at(total, owner, values[members])
        is_one: BoolArray = place < total[owner_of_digit]
        return is_one

    builder.define(digits, first_ones)
    above = np.flatnonzero(np.repeat(row, size)[:-1] == np.repeat(row, size)[1:])
    order = np.arange(len(above))
    builder.add_rows(  # the first ones
        np.concatenate([order, order]),
        np.concatenate([digits[above], digits[above + 1]]),
        np.repeat(np.array([1, -1], dtype=np.int64), len(above)),
        np.zeros(len(above), dtype=np.int64),
        NO_UPPER,
    )
    return np.split(digits, np.cumsum(size)[:-1])
