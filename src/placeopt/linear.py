"""
A neutral integer linear model, made of arrays and never term by term.

Formulations write it through `ModelBuilder`, solvers read it as `LinearModel`. All variables are integer and
bounded, all coefficients are integers; a relaxation is an option of the solve, not another model.

Exactness: no row and no objective may reach beyond 2**53 in absolute value anywhere inside the variable bounds.
Up to there a float64 holds every partial sum exactly, and int64 cannot overflow. (CP-SAT itself only asks for
2**31, and only of *enforced* rows, which this model does not have.)
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from placeopt.errors import OutOfTime, Unsupported

IntArray = NDArray[np.int64]
Sense = Literal["max", "min"]
Definition = Callable[[IntArray], ArrayLike]
"""From values of all columns, shape (n,), to those of the columns defined; see `ModelBuilder.define`."""
Entries = tuple[ArrayLike, ArrayLike, ArrayLike]
"""Rows counted from 0, columns, coefficients; shape (z,) each, or scalars beside an array."""

NO_LOWER = -(2**63)
"""Value in ``row_lower`` that means: no lower bound."""
NO_UPPER = 2**63 - 1
"""Value in ``row_upper`` that means: no upper bound."""
ENTRIES_PER_VARIABLE = 20
"""Entries of rows for each variable that a model may have."""
MAX_EXACT = 2**53
"""Largest absolute value of a variable bound, a coefficient, a row or the objective."""


@dataclass(frozen=True, eq=False)
class LinearModel:
    """
    Maximise or minimise ``objective @ x + offset`` over integer ``x``, ``row_lower <= A x <= row_upper``.

    With ``n`` variables, ``m`` rows and ``z`` non-zeros; all arrays are int64 and read-only.
    """

    lower: IntArray
    upper: IntArray
    """``lower``, ``upper``: Shape ``(n,)``, finite bounds. ``lower > upper`` makes the model infeasible."""
    row_start: IntArray
    columns: IntArray
    coefficients: IntArray
    """
    ``row_start``, ``columns``, ``coefficients``: Shapes ``(m + 1,)``, ``(z,)``, ``(z,)``: the rows of ``A``,
    compressed. Row ``i`` holds the entries ``row_start[i]:row_start[i + 1]``; columns ascend inside a row and do not
    repeat.
    """
    row_lower: IntArray
    row_upper: IntArray
    """``row_lower``, ``row_upper``: Shape ``(m,)``; `NO_LOWER` and `NO_UPPER` where there is no bound."""
    objective: IntArray  # shape ``(n,)``
    offset: int  # constant added to the objective
    sense: Sense  # ``"max"`` or ``"min"``
    row_divisor: IntArray
    """
    Shape ``(m,)``, positive: what each row was divided by when it was added. A dual of row ``i`` is per unit of the row
    as it stands here; per unit of the row as it was added it is ``dual[i] / row_divisor[i]``.
    """

    def __post_init__(self) -> None:
        for value in vars(self).values():
            if isinstance(value, np.ndarray):
                value.setflags(write=False)

    @property
    def num_variables(self) -> int:
        """Number of variables, ``n``."""
        return len(self.lower)

    @property
    def num_rows(self) -> int:
        """Number of rows, ``m``."""
        return len(self.row_lower)

    @property
    def num_nonzeros(self) -> int:
        """Number of stored coefficients, ``z``."""
        return len(self.columns)

    @property
    def row_of_nonzero(self) -> IntArray:
        """Shape ``(z,)``: the row of every stored coefficient."""
        return np.repeat(np.arange(self.num_rows, dtype=np.int64), np.diff(self.row_start))

    def objective_value(self, values: IntArray) -> int:
        """Objective with its offset at ``values``, shape ``(n,)``; exact."""
        return int(np.dot(self.objective, self._exact(values))) + self.offset

    def activities(self, values: IntArray) -> IntArray:
        """Return ``A @ values``, shape ``(m,)``, exact; of Python integers if a value lies outside its bounds."""
        products = self.coefficients * self._exact(values)[self.columns]
        return _row_sums(products, self.row_start)

    def violated_rows(self, values: IntArray) -> IntArray:
        """Return the indices of the rows that ``values``, shape ``(n,)``, breaks; bounds of variables aside."""
        activity = self.activities(values)
        broken = (activity < self.row_lower) | (activity > self.row_upper)
        return np.flatnonzero(broken)

    def violated_bounds(self, values: IntArray) -> IntArray:
        """Indices of the variables that lie outside their bounds; empty if none."""
        return np.flatnonzero((values < self.lower) | (values > self.upper))

    def is_feasible(self, values: IntArray) -> bool:
        """Whether ``values``, shape ``(n,)``, keeps all variable bounds and all rows."""
        return not len(self.violated_bounds(values)) and not len(self.violated_rows(values))

    def _exact(self, values: IntArray) -> IntArray:
        """The values in a type in which no sum can overflow: int64 inside the bounds, else Python integers."""
        if len(values) != self.num_variables:
            raise ValueError(f"{len(values)} values for {self.num_variables} variables")
        return values.astype(object) if len(self.violated_bounds(values)) else values


class ModelBuilder:
    """
    Collects variables and rows as arrays and makes a `LinearModel` of them.

    ``build`` may be called several times with variables, rows or another objective added in between, as
    lexicographic levels do; models built earlier do not change. Rows are brought into their final shape when they
    are added (duplicates summed, zeros dropped, divided by their greatest common divisor), so a row that cannot be
    represented is refused by the call that adds it.

    ``deadline``: Of ``time.monotonic()``. Building is not cut short from outside, so every call asks the clock and
    raises ``OutOfTime`` once it has passed. ``most_variables``: what would go beyond, or beyond `ENTRIES_PER_VARIABLE`
    for each of them, raises ``Unsupported``, and ``is_full`` is true from then on: a model that is too large to be
    solved is not built to its end.
    """

    def __init__(self, deadline: float = float("inf"), most_variables: float = float("inf")) -> None:
        self._deadline, self._most, self._most_entries = deadline, most_variables, ENTRIES_PER_VARIABLE * most_variables
        self.is_full = False
        self._lower = _Growing()
        self._upper = _Growing()
        self._lengths = _Growing()
        self._columns = _Growing()
        self._coefficients = _Growing()
        self._row_lower = _Growing()
        self._row_upper = _Growing()
        self._row_divisor = _Growing()
        self._definitions: list[tuple[IntArray, Definition]] = []
        self._objective = (_integers([]), _integers([]))
        self._offset = 0
        self._sense: Sense = "max"

    @property
    def num_variables(self) -> int:
        """Number of variables so far."""
        return len(self._lower)

    @property
    def num_rows(self) -> int:
        """Number of rows so far."""
        return len(self._row_lower)

    def check_time(self) -> None:
        """Raise ``OutOfTime`` if the deadline has passed; for loops that add nothing for a while."""
        if time.monotonic() > self._deadline:
            raise OutOfTime(f"no time left to build the model, at {self.num_variables} columns")

    def check_room(self, count: int, entries: int = 0) -> None:
        """Raise ``Unsupported`` if so many more variables, or entries of rows, are too many; before they are made."""
        if self.num_variables + count > self._most or len(self._columns) + entries > self._most_entries:
            self.is_full = True
            size = f"{self.num_variables + count} columns and {len(self._columns) + entries} entries of rows"
            raise Unsupported(f"at least {size}: too large for an exact solve")

    def add_variables(self, lower: ArrayLike, upper: ArrayLike, count: int | None = None) -> IntArray:
        """
        Add integer variables and return their columns.

        ``lower``, ``upper``: Scalars or arrays of shape ``(k,)``, the bounds; at most 2**53 in absolute value.
        ``count``: Number of variables, if both bounds are scalars (default 1).

        Returns shape ``(k,)``, the new column indices, ascending. Raises ``Unsupported`` if a bound exceeds 2**53, or
        there would be more than ``most_variables``. Raises ``ValueError`` if the shapes do not agree.
        """
        self.check_time()
        low, high = np.broadcast_arrays(_integers(lower), _integers(upper))
        if low.ndim == 0 or count is not None:
            low, high = (np.broadcast_to(bound, (1 if count is None else count,)) for bound in (low, high))
        if np.any(np.abs(low) > MAX_EXACT) or np.any(np.abs(high) > MAX_EXACT):
            raise Unsupported("a variable bound exceeds 2**53; scale the quantity or bound it")
        first = self.num_variables
        self.check_room(low.size)
        self._lower.append(low)
        self._upper.append(high)
        return np.arange(first, self.num_variables, dtype=np.int64)

    def add_rows(
        self,
        rows: ArrayLike,
        columns: ArrayLike,
        coefficients: ArrayLike,
        lower: ArrayLike,
        upper: ArrayLike,
        count: int | None = None,
    ) -> IntArray:
        """
        Add a block of rows ``lower <= A x <= upper``, given by coordinates, and return their indices, shape ``(k,)``.

        - ``rows``, ``columns``, ``coefficients``: Shape ``(z,)`` each, or a scalar: the entries in any order. Rows
          count from 0 inside this block; entries with the same row and column are summed.
        - ``lower``, ``upper``: Shape ``(k,)``, one entry per row of the block, or scalars; `NO_LOWER`, `NO_UPPER` for
          none. A row without entries is kept: it reads ``lower <= 0 <= upper``.
        - ``count``: k, where both bounds are scalars (default 1).

        Raises ``Unsupported`` if a row can exceed 2**53 inside the variable bounds, ``ValueError`` if shapes do not
        agree, or a row or column does not exist.
        """
        self.check_time()
        row_lower, row_upper = (
            np.atleast_1d(bound) for bound in np.broadcast_arrays(_integers(lower), _integers(upper))
        )
        row, column, coefficient = np.broadcast_arrays(
            np.atleast_1d(_integers(rows)), _integers(columns), _integers(coefficients)
        )
        if count is not None:
            row_lower, row_upper = np.broadcast_to(row_lower, (count,)), np.broadcast_to(row_upper, (count,))
        self.check_room(0, len(row))
        first, num_rows = self.num_rows, len(row_lower)
        if len(row) and (row.min() < 0 or row.max() >= num_rows):
            raise ValueError(f"row {row.min()}..{row.max()} outside this block of {num_rows} rows")
        row, column, coefficient = _merged(row, column, coefficient, self._reach(column), first)
        counts = np.bincount(row, minlength=num_rows)
        divisor = _row_divisors(coefficient, counts)
        self._lengths.append(counts)
        self._columns.append(column)
        self._coefficients.append(coefficient // divisor[row])
        self._row_lower.append(np.where(row_lower == NO_LOWER, NO_LOWER, -(-row_lower // divisor)))
        self._row_upper.append(np.where(row_upper == NO_UPPER, NO_UPPER, row_upper // divisor))
        self._row_divisor.append(divisor)
        return np.arange(first, first + num_rows, dtype=np.int64)

    def add_parts(self, lower: ArrayLike, upper: ArrayLike, *parts: Entries, count: int | None = None) -> IntArray:
        """Add a block of rows as `add_rows` does, whose entries come in several parts."""
        broadcast = (np.broadcast_arrays(*(_integers(array) for array in part)) for part in parts)
        rows, columns, coefficients = (np.concatenate(arrays) for arrays in zip(*broadcast, strict=True))
        return self.add_rows(rows, columns, coefficients, lower, upper, count)

    def add_row(self, columns: ArrayLike, coefficients: ArrayLike, lower: int, upper: int) -> int:
        """Add one row and return its index; as `add_rows`, which is the way to add many."""
        rows = np.zeros(np.shape(columns), dtype=np.int64)
        return int(self.add_rows(rows, columns, coefficients, [lower], [upper])[0])

    def define(self, columns: IntArray, definition: Definition) -> None:
        """
        Say what helper columns are once others are known: the value at which they cost least.

        It adds nothing to the model. A solver finds the values by itself; `complete` needs them for a hint.

        ``columns``: Shape ``(k,)``. ``definition``: Called with values of shape ``(n,)``, returns those of ``columns``.
        It may read what is not a helper, and helpers that were defined before.
        """
        self._definitions.append((columns, definition))

    def complete(self, values: IntArray) -> IntArray:
        """Return ``values``, shape ``(n,)``, with all defined columns filled in."""
        out = values.copy()
        for columns, definition in self._definitions:
            out[columns] = definition(out)
        return out

    def set_objective(self, columns: ArrayLike, coefficients: ArrayLike, sense: Sense, offset: int = 0) -> None:
        """
        Replace the objective by the sum of ``coefficients * x[columns]`` plus ``offset``.

        - ``columns``, ``coefficients``: Shape ``(k,)`` each (coefficients may be a scalar), any order; repeated columns
          are summed.
        - ``sense``: ``"max"`` or ``"min"``.
        - ``offset``: Constant, at most 2**53 in absolute value.

        Raises ``Unsupported`` if the objective can exceed 2**53 inside the variable bounds. Raises ``ValueError`` if
        shapes do not agree, a column does not exist or the sense is unknown.
        """
        if sense not in ("max", "min"):
            raise ValueError(f"sense {sense!r}: expected 'max' or 'min'")
        column, coefficient = np.broadcast_arrays(np.atleast_1d(_integers(columns)), _integers(coefficients))
        reach = np.abs(coefficient.astype(np.float64)) * self._reach(column)
        if reach.sum() + abs(offset) > MAX_EXACT:
            raise Unsupported("the objective can exceed 2**53; use coarser units or smaller variable bounds")
        self._objective = (column.copy(), coefficient.copy())
        self._offset, self._sense = int(offset), sense

    def build(self) -> LinearModel:
        """The model as it stands now; costs one copy of the arrays."""
        columns, coefficients = self._objective
        objective = np.zeros(self.num_variables, dtype=np.int64)
        np.add.at(objective, columns, coefficients)
        row_start = np.zeros(self.num_rows + 1, dtype=np.int64)
        np.cumsum(self._lengths.array(), out=row_start[1:])
        return LinearModel(
            lower=self._lower.array().copy(),
            upper=self._upper.array().copy(),
            row_start=row_start,
            columns=self._columns.array().copy(),
            coefficients=self._coefficients.array().copy(),
            row_lower=self._row_lower.array().copy(),
            row_upper=self._row_upper.array().copy(),
            objective=objective,
            offset=self._offset,
            sense=self._sense,
            row_divisor=self._row_divisor.array().copy(),
        )

    def _reach(self, columns: IntArray) -> NDArray[np.float64]:
        """Largest absolute value that the variable of each entry may take."""
        if len(columns) and (columns.min() < 0 or columns.max() >= self.num_variables):
            raise ValueError(f"column {columns.min()}..{columns.max()} outside the {self.num_variables} variables")
        widest = np.maximum(np.abs(self._lower.array()[columns]), np.abs(self._upper.array()[columns]))
        return np.asarray(widest, dtype=np.float64)


class _Growing:
    """An int64 array that grows by pieces; the pieces are joined only when it is read."""

    def __init__(self) -> None:
        self._pieces: list[IntArray] = []
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def append(self, piece: IntArray) -> None:
        self._pieces.append(np.array(piece, dtype=np.int64))
        self._length += len(piece)

    def array(self) -> IntArray:
        if len(self._pieces) != 1:
            self._pieces = [np.concatenate(self._pieces) if self._pieces else _integers([])]
        return self._pieces[0]


def _integers(values: ArrayLike) -> IntArray:
    """As int64, refusing floats instead of cutting them."""
    array = np.asarray(values)
    if array.dtype.kind not in "iub" and array.size:
        raise ValueError(f"integers expected, not {array.dtype}")
    return array.astype(np.int64, copy=False)


def _row_sums(values: IntArray, row_start: IntArray) -> IntArray:
    """Sum of each row's values; 0 for an empty row, which ``reduceat`` alone would get wrong."""
    sums = np.zeros(len(row_start) - 1, dtype=values.dtype)
    filled = np.diff(row_start) > 0
    if filled.any():
        sums[filled] = np.add.reduceat(values, row_start[:-1][filled])
    return sums


def _merged(
    row: IntArray, column: IntArray, coefficient: IntArray, reach: NDArray[np.float64], first: int
) -> tuple[IntArray, IntArray, IntArray]:
    """Order the entries, sum duplicates and drop zeros; refuse rows that are not exact in float64."""
    size = np.abs(coefficient.astype(np.float64))
    totals = np.bincount(row, weights=size * np.maximum(reach, 1.0))
    if len(totals) and totals.max() > MAX_EXACT:
        worst = int(totals.argmax())
        raise Unsupported(
            f"row {first + worst} (row {worst} of its block) can reach {totals[worst]:.3g}, more than 2**53; "
            "use coarser units or smaller variable bounds"
        )
    key = row * (int(column.max(initial=0)) + 1) + column
    if np.any(key[1:] <= key[:-1]):
        order = np.argsort(key, kind="stable")
        key, row, column, coefficient = key[order], row[order], column[order], coefficient[order]
        heads = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]]))
        if len(heads) < len(key):
            row, column = row[heads], column[heads]
            coefficient = np.add.reduceat(coefficient, heads)
    if not coefficient.all():
        kept = np.flatnonzero(coefficient)
        row, column, coefficient = row[kept], column[kept], coefficient[kept]
    return row, column, coefficient


def _row_divisors(coefficient: IntArray, counts: IntArray) -> IntArray:
    """Greatest common divisor of each row's coefficients, 1 for an empty row."""
    divisors = np.ones(len(counts), dtype=np.int64)
    filled = np.flatnonzero(counts)
    heads = (np.cumsum(counts) - counts)[filled]
    size = np.abs(coefficient)
    if len(heads) and np.any(np.minimum.reduceat(size, heads) > 1):  # a row that holds a 1 has gcd 1; most do
        divisors[filled] = np.gcd.reduceat(size, heads)
    return divisors
