"""Rows, prices on functions of sums of columns, and prices on products: collected, then added to a model at once."""

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
        self._products: list[tuple[IntArray, int, IntArray, int, int]] = []

    def add(self, columns: IntArray, coefficients: IntArray) -> None:
        """Price columns as they are."""
        self._builder.check_time()
        self._columns.append(columns)
        self._coefficients.append(coefficients)

    def add_count(self, columns: IntArray, price_of: IntArray) -> None:
        """Price the sum k of ``columns`` with ``price_of[k]``; it never exceeds the last, and 0 costs nothing."""
        self._builder.check_time()
        if len(price_of) == 2:
            self.add(columns, np.full(len(columns), price_of[1], dtype=np.int64))
        elif price_of.any():
            self._counts.append((columns, price_of))

    def add_both(self, one: IntArray, other: IntArray, price: IntArray) -> None:
        """Price, each at its ``price``, the pairs of binary columns that are both 1."""
        self._builder.check_time()
        self._pairs += len(price)  # each becomes a column
        self._builder.check_room(self._pairs)
        self._both.append((one, other, price))

    def add_product(self, one: int | IntArray, most: int, other: int | IntArray, most_other: int, price: int) -> None:
        """Price the product of two sums of columns that never exceed ``most`` and ``most_other``."""
        self._builder.check_time()
        if price:
            self._products.append((np.atleast_1d(one), most, np.atleast_1d(other), most_other, price))

    def hand_over(self) -> tuple[IntArray, IntArray]:
        """Add helper columns and rows, and return columns and coefficients of the whole expression."""
        self._add_counts()
        self._add_products()
        self._add_both()
        nothing = np.zeros(0, dtype=np.int64)
        return np.concatenate([nothing, *self._columns]), np.concatenate([nothing, *self._coefficients])

    def _add_counts(self) -> None:
        digits = unary_digits(self._builder, [(columns, len(price_of) - 1) for columns, price_of in self._counts])
        for columns, (_, price_of) in zip(digits, self._counts, strict=True):
            self.add(columns, np.diff(price_of))

    def _add_products(self) -> None:
        """Write sums as binaries, each sum once, and the products as pairs of these."""
        sums: dict[tuple[bytes, int], int] = {}
        asked: list[tuple[IntArray, int]] = []
        factors: list[tuple[int, int, int]] = []

        def number(columns: IntArray, most: int) -> int:
            at = sums.setdefault((columns.tobytes(), most), len(asked))
            if at == len(asked):
                asked.append((columns, most))
            return at

        for one, most, other, most_other, price in self._products:
            factors.append((number(one, most), number(other, most_other), price))
        long = [i for i, (columns, most) in enumerate(asked) if len(columns) > 1 or most > 1]
        written = dict(zip(long, unary_digits(self._builder, [asked[i] for i in long]), strict=True))
        digits = [written.get(i, columns) for i, (columns, _) in enumerate(asked)]
        for one_, other_, price in factors:
            a, b = digits[one_], digits[other_]
            first, second = np.repeat(a, len(b)), np.tile(b, len(a))
            self.add_both(first, second, np.full(len(first), price, dtype=np.int64))

    def _add_both(self) -> None:
        """Columns that are at least 1 where both of a pair are, or, where that saves, at most 1 there and else 0."""
        if not self._both:
            return
        one, other, price = (np.concatenate(arrays) for arrays in zip(*self._both, strict=True))
        builder = self._builder
        both = builder.add_variables(0, 1, count=len(price))
        at = np.flatnonzero(price >= 0)
        row = np.arange(len(at))
        builder.add_parts(NO_LOWER, 1, (row, one[at], 1), (row, other[at], 1), (row, both[at], -1), count=len(at))
        at = np.flatnonzero(price < 0)
        row = np.arange(len(at))
        for factor in (one, other):
            builder.add_parts(NO_LOWER, 0, (row, both[at], 1), (row, factor[at], -1), count=len(at))
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
