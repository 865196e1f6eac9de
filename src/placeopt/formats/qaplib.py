"""Quadratic assignment problems in QAPLIB's form: n, then two matrices of n x n integers (Burkard et al. 1997)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from placeopt.errors import BadInput, Unsupported

MAX_SIZE = 1_024


def parse_qaplib(data: bytes, source: str = "document") -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return both matrices, (n, n) each; raises `BadInput` with the word that is wrong, `Unsupported` if large."""
    words = data.decode(errors="replace").replace(",", " ").split(None, 2 * MAX_SIZE**2 + 2)
    for position, word in enumerate(words, 1):
        if not (word.isascii() and word.removeprefix("-").isdecimal() and len(word) <= 15):
            raise BadInput(f"{source}: word {position} is {word[:40]!r}, expected an integer")
    size = int(words[0]) if words else 0
    if size < 1:
        raise BadInput(f"{source}: expected the size n first, 1 or more")
    if size > MAX_SIZE:
        raise Unsupported(f"{source}: n is {size}; at most {MAX_SIZE}")
    if len(words) != 1 + 2 * size**2:
        raise BadInput(f"{source}: {len(words)} numbers; n = {size} and two matrices make {1 + 2 * size**2}")
    one, other = np.array([int(word) for word in words[1:]], dtype=np.int64).reshape(2, size, size)
    return one, other
