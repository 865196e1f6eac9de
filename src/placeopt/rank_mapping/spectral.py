"""Eigenvalue bound on a partition into sets of one size."""

from __future__ import annotations

import time

import numpy as np

from placeopt.rank_mapping.case import FloatArray

ROUNDS, ROUNDS_LARGE, LARGE = 30, 4, 128
"""Steps of ascent, and those above ``LARGE`` vertices, where an eigenvalue problem takes 0.1 s."""


def partition_bound(weights: FloatArray, size: int, deadline: float = np.inf) -> float:
    """
    At least this much traffic leaves the sets of a partition into sets of ``size``, summed over the sets.

    With X the sets' indicator columns, L the Laplacian and d numbers that sum to 0, the sum of cuts is tr X'LX =
    tr X'(L + diag d)X; off the constant vector X spans k - 1 directions of norm ``size``, so it is at least ``size`` x
    the k - 1 smallest eigenvalues of L + diag d there (Donath and Hoffman 1973; the projection by Rendl and Wolkowicz
    1995). d is improved by a few steps of subgradient ascent; every d gives a bound.
    """
    n = len(weights)
    k = n // size
    if k < 2 or k * size != n:
        return 0.0
    laplacian = np.diag(weights.sum(axis=1)) - weights
    basis = np.linalg.qr(np.column_stack([np.ones(n), np.eye(n)[:, 1:]]))[0][:, 1:]  # (n, n - 1), off the constant
    d, best, step = np.zeros(n), 0.0, weights.sum(axis=1).mean()
    for _ in range(ROUNDS if n <= LARGE else ROUNDS_LARGE):
        if time.monotonic() >= deadline:
            break
        values, vectors = np.linalg.eigh(basis.T @ (laplacian + np.diag(d)) @ basis)
        bound = size * float(values[: k - 1].sum())
        if bound > best * (1 + 1e-4):
            best = bound
        else:
            step *= 0.7
        slope = ((basis @ vectors[:, : k - 1]) ** 2).sum(axis=1)
        slope -= slope.mean()
        length = float(np.linalg.norm(slope))
        if length < 1e-9:
            break
        d = d + step * slope / length
    return best
