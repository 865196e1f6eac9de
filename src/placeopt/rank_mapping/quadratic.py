"""The quadratic assignment problem with any two matrices: tabu search until a limit, and Gilmore and Lawler's bound."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from placeopt.errors import BadInput, Unsupported
from placeopt.linear import MAX_EXACT
from placeopt.problem import IntArray
from placeopt.rank_mapping.bound import least_assignment
from placeopt.rank_mapping.case import SCALE_BITS, FloatArray
from placeopt.rank_mapping.tabu_population import TabuPopulation

MAX_SIZE = 256
"""Largest n: of QAPLIB, and of memory for the population."""
POPULATION = 16
"""Searches side by side: 19 us a swap at n = 36, 143 with one; 32 give 15 and fewer swaps each."""
STEPS_PER_ITEM = 100
"""Swaps of a search between two generations, times n."""
SLICE = 50
"""Swaps between two looks at the clock."""


@dataclass(frozen=True, eq=False)
class QuadraticResult:
    """An order of a quadratic assignment problem."""

    order: IntArray  # (n,) item i stands at place order[i]
    cost: int  # sum over ordered pairs of flow x distance
    bound: int  # proven: no order costs less

    @property
    def optimal(self) -> bool:
        """Whether no order costs less, by proof."""
        return self.cost == self.bound


def solve_quadratic(
    flows: IntArray,
    distances: IntArray,
    *,
    time_limit_s: float,
    seed: int = 0,
    generations: int | None = None,
    on_better: Callable[[QuadraticResult], object] = lambda _: None,
) -> QuadraticResult:
    """
    Search an order of little cost: the sum over i, j of ``flows[i, j] * distances[order[i], order[j]]``.

    Parameters
    ----------
    flows, distances
        Shape ``(n, n)``, integers >= 0; symmetric or not. Where both have diagonals, these are linear costs:
        ``flows[i, i] * distances[p, p]`` for item i at place p.
    time_limit_s
        Wall-clock seconds, used whole unless the bound is met.
    seed
        Of starts, tenures and crossovers.
    generations
        Work budget: with a time limit that does not bind, the same arguments give the same order. None: no budget.
    on_better
        Called with the first order and with each better one, with what is proven by then.

    Returns
    -------
    QuadraticResult
        The best order met, and Gilmore and Lawler's bound (1962, 1963).

    Raises
    ------
    BadInput
        If a matrix is not square, not of non-negative integers, or sizes differ.
    Unsupported
        Above n = 256, or if costs may pass 2^47.
    """
    deadline = time.monotonic() + time_limit_s
    _check(flows, distances)
    n = len(flows)
    linear = np.outer(flows.diagonal(), distances.diagonal()).astype(np.float64)
    a, b = flows.astype(np.float64), distances.astype(np.float64)
    first = round(float((a * b).sum()))
    if n < 2:
        return QuadraticResult(np.arange(n), first, first)
    on_better(QuadraticResult(np.arange(n), first, 0))
    bound = gilmore_lawler_bound(a, b, deadline)
    on_better(QuadraticResult(np.arange(n), first, bound))
    rng = np.random.default_rng(seed)
    np.fill_diagonal(a, 0)
    np.fill_diagonal(b, 0)
    orders = np.array([np.arange(n), *(rng.permutation(n) for _ in range(POPULATION - 1))])
    pool, costs, least = orders[:1], np.array([float(first)]), float(first)
    generation = 0
    while costs[0] > bound and generation != generations and time.monotonic() < deadline:
        search = TabuPopulation(a, b, orders, rng, linear if linear.any() else None)
        for _ in range(STEPS_PER_ITEM * n // SLICE):
            search.run(SLICE)
            if search.best_costs.min() < least:
                least = float(search.best_costs.min())
                on_better(QuadraticResult(search.best_orders[search.best_costs.argmin()].copy(), round(least), bound))
            if least <= bound or time.monotonic() >= deadline:
                break
        pool, costs = _elite(np.vstack([pool, search.best_orders]), np.concatenate([costs, search.best_costs]))
        orders = np.array([_child(pool, rng) for _ in range(POPULATION)])
        generation += 1
    return QuadraticResult(pool[0], round(float(costs[0])), bound)


def gilmore_lawler_bound(flows: FloatArray, distances: FloatArray, deadline: float = np.inf) -> int:
    """Return the bound: least assignment of items to places, each pair at its least sum of products."""
    n = len(flows)
    if n < 2:
        return round(float((flows * distances).sum()))
    off = ~np.eye(n, dtype=bool)
    falling = -np.sort(-flows[off].reshape(n, n - 1), axis=1)
    rising = np.sort(distances[off].reshape(n, n - 1), axis=1)
    costs = falling @ rising.T + np.outer(flows.diagonal(), distances.diagonal())
    return max(0, int(np.ceil(least_assignment(costs, deadline) - 1e-6)))


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
            for place in (one[item], other[item]) if rng.random() < 0.5 else (other[item], one[item]):
                if not used[place]:
                    child[item], used[place] = place, True
                    break
    child[child < 0] = rng.permutation(np.flatnonzero(~used))
    moved = rng.choice(n, int(rng.integers(2, max(3, n // 4))), replace=False)
    child[moved] = child[np.roll(moved, 1)]
    return child


def _check(flows: IntArray, distances: IntArray) -> None:
    for name, matrix in (("flows", flows), ("distances", distances)):
        square = matrix.ndim == 2 and matrix.shape[0] == matrix.shape[1] and np.issubdtype(matrix.dtype, np.integer)
        if not square or (matrix < 0).any():
            raise BadInput(f"mapping: {name}: expected a square of integers >= 0, not {matrix.shape} of {matrix.dtype}")
    if len(flows) != len(distances):
        raise BadInput(f"mapping: {len(flows)} items and {len(distances)} places; expected as many")
    if len(flows) > MAX_SIZE:
        raise Unsupported(f"mapping: {len(flows)} items are too many (limit {MAX_SIZE})")
    if flows.astype(np.float64).sum() * float(distances.max(initial=0)) > MAX_EXACT >> SCALE_BITS:
        raise Unsupported("mapping: flow x distance may pass 2^47; divide by a common factor")
