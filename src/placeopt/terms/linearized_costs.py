"""Prices on functions of sums of columns, and on pairs of columns: collected, then added to a model at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from placeopt.linear import NO_LOWER, NO_UPPER, ModelBuilder
from placeopt.problem import BoolArray, IntArray


class CostPrices:
    """
    A linear expression whose helper columns and rows are added in blocks.

    One call of the builder for each of ten thousand nodes and jobs costs minutes where one for all costs a second.
    Collecting may take long too, so the clock is asked at every price: ``OutOfTime`` where the builder's deadline has
    passed.
    """

    def __init__(self, builder: ModelBuilder) -> None:
        self._builder = builder
        self._columns: list[IntArray] = []
        self._coefficients: list[IntArray] = []
        self._counts: list[tuple[IntArray, IntArray]] = []
        self._both: list[tuple[IntArray, IntArray, IntArray]] = []
        self._pairs = 0

    def add(self, columns: IntArray, coefficients: IntArray | int) -> None:
        """Price columns as they are."""
        self._builder.check_time()
        self._columns.append(columns)
        self._coefficients.append(np.broadcast_to(np.asarray(coefficients, dtype=np.int64), columns.shape))

    def add_count(self, columns: IntArray, price_of: IntArray) -> None:
        """Price the sum k of ``columns`` with ``price_of[k]``; it never exceeds the last, and 0 costs nothing."""
        self._builder.check_time()
        if len(price_of) == 2:
            self.add(columns, int(price_of[1]))
        elif price_of.any():
            self._counts.append((columns, price_of))

    def add_both(self, one: IntArray, other: IntArray, price: IntArray) -> None:
        """Price, each at its ``price`` of at least 0, the pairs of binary columns that are both 1."""
        self._builder.check_time()
        self._pairs += len(price)  # each becomes a column
        self._builder.check_room(self._pairs)
        self._both.append((one, other, price))

    def hand_over(self) -> tuple[IntArray, IntArray]:
        """Add helper columns and rows, and return columns and coefficients of the whole expression."""
        digits = unary_digits(self._builder, [(columns, len(price_of) - 1) for columns, price_of in self._counts])
        for columns, (_, price_of) in zip(digits, self._counts, strict=True):
            self.add(columns, np.diff(price_of))
        if self._both:  # columns that are at least 1 where both of a pair are
            one, other, price = (np.concatenate(arrays) for arrays in zip(*self._both, strict=True))
            both, row = self._builder.add_variables(0, 1, count=len(price)), np.arange(len(price))
            self._builder.add_parts(NO_LOWER, 1, (row, one, 1), (row, other, 1), (row, both, -1), count=len(price))
            self._builder.define(both, lambda values: values[one] * values[other])
            self.add(both, price)
        nothing = np.zeros(0, dtype=np.int64)
        return np.concatenate([nothing, *self._columns]), np.concatenate([nothing, *self._coefficients])


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
    members, owner = np.concatenate([columns for columns, _ in sums]), np.repeat(row, length)
    owner_of_digit = np.repeat(row, size)
    # as many digits are 1 as the sum says
    builder.add_parts(0, 0, (owner, members, 1), (owner_of_digit, digits, -1), count=len(sums))
    place = np.arange(len(digits)) - np.repeat(np.cumsum(size) - size, size)

    def first_ones(values: IntArray) -> BoolArray:
        total = np.zeros(len(sums), dtype=np.int64)
        np.add.at(total, owner, values[members])
        is_one: BoolArray = place < total[owner_of_digit]
        return is_one

    builder.define(digits, first_ones)
    above = np.flatnonzero(owner_of_digit[:-1] == owner_of_digit[1:])
    order = np.arange(len(above))  # the first ones
    builder.add_parts(0, NO_UPPER, (order, digits[above], 1), (order, digits[above + 1], -1), count=len(above))
    return np.split(digits, np.cumsum(size)[:-1])
