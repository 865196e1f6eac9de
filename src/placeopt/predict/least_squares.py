"""Least squares with coefficients of at least 0."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def nonnegative(a: Floats, y: Floats) -> Floats:
    """
    Return x >= 0 for which ``a x`` comes close to ``y``.

    Whatever comes out below 0 is taken to be 0, the most negative first, and the rest is fitted again: no promise of
    the least squares of all, but simple, and the same every time.

    Parameters
    ----------
    a, y
        Shapes (rows, n) and (rows,).

    Returns
    -------
    array
        Shape (n,).
    """
    used = list(range(a.shape[1]))
    x = np.zeros(a.shape[1])
    while used:
        found = np.linalg.lstsq(a[:, used], y, rcond=None)[0]
        if found.min() >= 0:
            x[used] = found
            break
        del used[int(found.argmin())]
    return x
