"""Arrays for the local search: views that are read one number at a time, compiled or not."""

from __future__ import annotations

from typing import Protocol, cast

import numpy as np
from numpy.typing import ArrayLike


class Row(Protocol):
    """Integers of 64 bits at positions from 0 on."""

    def __getitem__(self, at: int, /) -> int:
        """Return one of them, as a plain integer."""
        ...

    def __setitem__(self, at: int, number: int, /) -> None:
        """Change one of them."""
        ...


class Reals(Protocol):
    """Numbers of 64 bits at positions from 0 on."""

    def __getitem__(self, at: int, /) -> float:
        """Return one of them."""
        ...

    def __setitem__(self, at: int, number: float, /) -> None:
        """Change one of them."""
        ...


class Table(Protocol):
    """Integers of 64 bits at pairs of positions."""

    def __getitem__(self, at: tuple[int, int], /) -> int:
        """Return one of them, as a plain integer."""
        ...

    def __setitem__(self, at: tuple[int, int], number: int, /) -> None:
        """Change one of them."""
        ...


class Block(Protocol):
    """Integers of 64 bits at triples of positions."""

    def __getitem__(self, at: tuple[int, int, int], /) -> int:
        """Return one of them, as a plain integer."""
        ...


def row(values: ArrayLike) -> Row:
    """Return a copy of ``values``, shape (n,), with one entry more: so it is never empty."""
    return cast("Row", np.append(np.asarray(values, dtype=np.int64).ravel(), 0).data)


def table(values: ArrayLike) -> Table:
    """Return a copy of ``values``, shape (n, m), with a row and a column of zeros more."""
    return cast("Table", _padded(values, 2).data)


def block(values: ArrayLike) -> Block:
    """Return a copy of ``values``, shape (n, m, k), with a layer of zeros more at the end of each axis."""
    return cast("Block", _padded(values, 3).data)


def reals(values: ArrayLike) -> Reals:
    """Return a copy of ``values``, shape (n,), with one entry more."""
    return cast("Reals", np.append(np.asarray(values, dtype=np.float64).ravel(), 0.0).data)


def zeros(size: int) -> Row:
    """Return ``size`` zeros and one more."""
    return row(np.zeros(size, dtype=np.int64))


def _padded(values: ArrayLike, axes: int) -> np.ndarray:
    array = np.asarray(values, dtype=np.int64, order="C")
    if array.ndim != axes:
        array = array.reshape((0,) * axes)
    return np.pad(array, [(0, 1)] * axes)
