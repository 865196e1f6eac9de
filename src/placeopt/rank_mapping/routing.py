"""Congestion of sending one unit between all pairs of vertices: a bound on every cut at once."""

from __future__ import annotations

import time

import numpy as np

from placeopt.rank_mapping.case import FloatArray

ROUNDS = 60
STEEPNESS = 0.25


def congestion(weights: FloatArray, deadline: float = np.inf) -> float:
    """
    Route a unit between every pair of vertices and return the largest load / weight of an edge; inf if disconnected.

    A set of s vertices sends s (n - s) units over its border, which cannot carry more than congestion x its weight, so
    its cut is at least s (n - s) / congestion (Leighton and Rao 1988). Any routing proves that. Each round sends all
    pairs along shortest paths, with lengths that grow with the load of the rounds before; the mean of the rounds is
    what is sent.
    """
    n = len(weights)
    edges = weights > 0
    load = np.zeros((n, n))
    best, length = np.inf, np.where(edges, 1 / np.maximum(weights, 1), np.inf)
    base = length.copy()
    for done in range(1, ROUNDS + 1):
        if time.monotonic() >= deadline:
            break
        sent = _send(length)
        if sent is None:
            return float("inf")
        load += sent
        used = np.divide(load + load.T, weights, out=np.zeros((n, n)), where=edges) / done
        worst = float(used.max())
        best = min(best, worst)
        length = np.where(edges, base * np.exp(STEEPNESS * done * (used / worst - 1)), np.inf)
    return best


def _send(length: FloatArray) -> FloatArray | None:
    """Shape (n, n): units over each edge, direction told, when every unordered pair sends one along a shortest path."""
    n = len(length)
    distance = length.copy()
    np.fill_diagonal(distance, 0)
    via = np.tile(np.arange(n), (n, 1))  # (i, j): first vertex on the way from i to j
    for m in range(n):
        through = distance[:, m, None] + distance[m]
        shorter = through < distance
        distance = np.where(shorter, through, distance)
        via = np.where(shorter, via[:, m, None], via)
    if not np.isfinite(distance).all():
        return None
    flow = np.zeros((n, n))
    at, to = np.triu_indices(n, 1)
    while len(at):
        step = via[at, to]
        np.add.at(flow, (at, step), 1.0)
        going = step != to
        at, to = step[going], to[going]
    return flow
