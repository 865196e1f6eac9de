"""Matrices of integers: quadratic assignment problems in QAPLIB's form (Burkard et al. 1997), and traffic of ranks."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from placeopt.documents.files import integers, parse_json
from placeopt.errors import BadInput, Unsupported

MAX_SIZE = 1_024


def parse_qaplib(data: bytes, source: str = "document") -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return both matrices, (n, n) each; raises `BadInput` with the word that is wrong, `Unsupported` if large."""
    numbers = integers(data.decode(errors="replace").replace(",", " ").split(None, 2 * MAX_SIZE**2 + 2), source)
    size = numbers[0] if numbers else 0
    if size < 1:
        raise BadInput(f"{source}: expected the size n first, 1 or more")
    if size > MAX_SIZE:
        raise Unsupported(f"{source}: n is {size}; at most {MAX_SIZE}")
    if len(numbers) != 1 + 2 * size**2:
        raise BadInput(f"{source}: {len(numbers)} numbers; n = {size} and two matrices make {1 + 2 * size**2}")
    one, other = np.array(numbers[1:], dtype=np.int64).reshape(2, size, size)
    return one, other


def parse_traffic(data: bytes, source: str = "document") -> NDArray[np.int64]:
    """
    Return a square matrix, (n, n): rows of a JSON list, or lines of integers with commas or blanks between them.

    Raises `BadInput` with the row that is wrong, `Unsupported` if large.
    """
    rows: object
    if data.lstrip()[:1] == b"[":
        rows = parse_json(data, source)
    else:
        lines = data.decode(errors="replace").splitlines()
        rows = [line.replace(",", " ").replace(";", " ").split() for line in lines if line.strip()]
    if not isinstance(rows, list) or not rows:
        raise BadInput(f"{source}: expected a square matrix, one row for each rank")
    if len(rows) > MAX_SIZE:
        raise Unsupported(f"{source}: {len(rows)} rows; at most {MAX_SIZE}")
    for number, row in enumerate(rows, 1):
        if not isinstance(row, list) or len(row) != len(rows):
            width = f"has {len(row)} entries" if isinstance(row, list) else f"is {str(row)[:32]!r}"
            raise BadInput(f"{source}: row {number} {width}, expected {len(rows)}, as many as there are rows")
    return np.array([integers(row, f"{source}: row {number}") for number, row in enumerate(rows, 1)], dtype=np.int64)
