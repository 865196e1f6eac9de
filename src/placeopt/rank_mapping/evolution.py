"""Generations of tabu searches and crossovers for the quadratic assignment problem."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from placeopt.problem import IntArray
from placeopt.rank_mapping.case import FloatArray
from placeopt.rank_mapping.tabu_population import TabuPopulation

POPULATION = 16
"""Searches side by side: 19 us a swap at n = 36, 143 with one; 32 give 15 and fewer swaps each."""


def evolve(
    flows: FloatArray,
    distances: FloatArray,
    starts: IntArray,
    rng: np.random.Generator,
    *,
    linear: FloatArray | None = None,
    steps: int,
    deadline: float,
    target: float,
    generations: int | None = None,
    patience: int | None = None,
    on_better: Callable[[IntArray, int], object] = lambda _order, _cost: None,
) -> tuple[IntArray, int]:
    """
    Improve orders, (K, n), by tabu searches of ``steps`` swaps an item; return the best order met and its cost.

    The cost of an order p is the sum of ``flows[i, j] * distances[p[i], p[j]]`` over all ordered pairs of items, (n, n)
    each with zero diagonals, and of ``linear[i, p[i]]``, (n, n), over all items.

    The next generation are crossovers of the best orders met, as many as before. The search ends at the deadline, of
    ``time.monotonic()``, at the cost ``target``, after so many generations, or after ``patience`` of them that found
    nothing better. ``on_better`` is called with each better order that is met.
    """
    pool, costs, least = starts[:0], np.zeros(0), np.inf
    orders, generation, idle = starts, 0, 0
    while True:
        before, search = least, TabuPopulation(flows, distances, orders, rng, linear=linear)
        for _ in range(steps):
            search.run(starts.shape[1], deadline=deadline, target=target)
            if search.best_costs.min() < least:
                least = float(search.best_costs.min())
                on_better(search.best_orders[search.best_costs.argmin()].copy(), round(least))
            if least <= target or time.monotonic() >= deadline:
                break
        pool, costs = _elite(np.vstack([pool, search.best_orders]), np.concatenate([costs, search.best_costs]))
        generation, idle = generation + 1, 0 if least < before else idle + 1
        if least <= target or generation == generations or idle == patience or time.monotonic() >= deadline:
            return pool[0], round(least)
        orders = np.array([_child(pool, rng) for _ in starts])


def _elite(orders: IntArray, costs: FloatArray) -> tuple[IntArray, FloatArray]:
    """Return the best orders, each once, the best first."""
    unique, first = np.unique(orders, axis=0, return_index=True)
    kept = np.argsort(costs[first], kind="stable")[:POPULATION]
    return unique[kept], costs[first][kept]


def _child(pool: IntArray, rng: np.random.Generator) -> IntArray:
    """Return a crossover of two orders: what they share stays, places of one or the other, then a few moved."""
    n = pool.shape[1]
    one, other = pool[rng.integers(0, len(pool), (2, 2)).min(axis=1)]
    child = np.where(one == other, one, -1)
    used = np.zeros(n, dtype=bool)
    used[child[child >= 0]] = True
    for item in rng.permutation(n):
        if child[item] < 0:
            for place in (one[item], other[item]) if rng.random() < 1 / 2 else (other[item], one[item]):
                if not used[place]:
                    child[item], used[place] = place, True
                    break
    child[child < 0] = rng.permutation(np.flatnonzero(~used))
    moved = rng.choice(n, int(rng.integers(2, max(2, n // 4 - 1), endpoint=True)), replace=False)
    child[moved] = child[np.roll(moved, 1)]
    return child
