"""The quadratic assignment problem with any two matrices: tabu search until a limit, and Gilmore and Lawler's bound."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from placeopt.errors import BadInput, Unsupported
from placeopt.problem import IntArray
from placeopt.rank_mapping.bound import gilmore_lawler
from placeopt.rank_mapping.case import MAX_COST, Mapping, check_square
from placeopt.rank_mapping.evolution import POPULATION, evolve

MAX_SIZE = 256
"""Largest n: of QAPLIB, and of memory for the population."""
STEPS_PER_ITEM = 100
"""Swaps of a search between two generations, times n."""


def solve_quadratic(
    flows: IntArray,
    distances: IntArray,
    *,
    time_limit_s: float,
    seed: int = 0,
    generations: int | None = None,
    on_better: Callable[[Mapping], object] = lambda _: None,
) -> Mapping:
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
    Mapping
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
        return Mapping(np.arange(n), first, first)
    on_better(Mapping(np.arange(n), first, 0))
    bound = gilmore_lawler(flows, distances)
    on_better(Mapping(np.arange(n), first, bound))
    rng = np.random.default_rng(seed)
    np.fill_diagonal(a, 0)
    np.fill_diagonal(b, 0)
    order, cost = evolve(
        a,
        b,
        np.array([np.arange(n), *(rng.permutation(n) for _ in range(POPULATION - 1))]),
        rng,
        linear=linear if linear.any() else None,
        steps=STEPS_PER_ITEM,
        deadline=deadline,
        target=bound,
        generations=generations,
        on_better=lambda order, cost: on_better(Mapping(order, cost, bound)),
    )
    return Mapping(order, cost, bound)


def _check(flows: IntArray, distances: IntArray) -> None:
    for name, matrix in (("flows", flows), ("distances", distances)):
        check_square(name, matrix)
    if len(flows) != len(distances):
        raise BadInput(f"mapping: {len(flows)} items and {len(distances)} places; expected as many")
    if len(flows) > MAX_SIZE:
        raise Unsupported(f"mapping: {len(flows)} items are too many (limit {MAX_SIZE})")
    if flows.astype(np.float64).sum() * float(distances.max(initial=0)) > MAX_COST:
        raise Unsupported("mapping: flow x distance may pass 2^47; divide by a common factor")
