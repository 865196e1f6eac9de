"""Graphs and distances."""

from __future__ import annotations

import numpy as np

from placeopt.problem import IntArray
from strategies.choice import Choice


def matrix(choice: Choice, size: int, low: int, high: int, density: float = 1.0) -> tuple[tuple[int, ...], ...]:
    """Draw a symmetric matrix with a diagonal of 0."""
    cells = {(a, b): choice.number(low, high) if choice.chance(density) else 0 for b in range(size) for a in range(b)}
    return tuple(tuple(0 if a == b else cells[min(a, b), max(a, b)] for b in range(size)) for a in range(size))


def make_graph(choice: Choice, *, least: int = 1, most: int = 6, heaviest: int = 3, density: float = 0.6) -> IntArray:
    """Weights of the edges of a graph, 0 where there is none: shape (k, k), symmetric, diagonal 0."""
    return np.array(matrix(choice, choice.number(least, most), 1, heaviest, density), dtype=np.int64)


def make_distances(choice: Choice, size: int, *, low: int = 1, high: int = 5) -> IntArray:
    """Distances: shape (size, size), symmetric, diagonal 0."""
    return np.array(matrix(choice, size, low, high), dtype=np.int64).reshape(size, size)
