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
    array = np.asarray(values, dtype=np.int64, order="C")
    return cast("Table", np.pad(array if array.ndim == 2 else array.reshape(0, 0), (0, 1)).data)


def block(values: np.ndarray) -> Block:
    """Return a copy of ``values``, shape (n, m, k), with a layer of zeros more at the end of each axis."""
    return cast("Block", np.pad(np.asarray(values, dtype=np.int64, order="C"), (0, 1)).data)


def reals(values: ArrayLike) -> Reals:
    """Return a copy of ``values``, shape (n,), with one entry more."""
    return cast("Reals", np.append(np.asarray(values, dtype=np.float64).ravel(), 0.0).data)


def zeros(size: int) -> Row:
    """Return ``size`` zeros and one more."""
    return row(np.zeros(size, dtype=np.int64))
