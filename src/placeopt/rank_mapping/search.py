"""Local search by swaps: a tabu search whose table of all swap deltas is brought up to date in O(n^2)."""

from __future__ import annotations

import time

import numpy as np

from placeopt.problem import IntArray
from placeopt.rank_mapping.case import FloatArray, MappingProblem


def improve(
    case: MappingProblem, order: IntArray, rng: np.random.Generator, *, steps: int, deadline: float, target: float
) -> tuple[int, IntArray]:
    """
    Improve an order by swaps of ranks and, for ranks of several GPUs, by swaps of GPUs inside their nodes.

    Parameters
    ----------
    steps
        Swaps of ranks to make.
    deadline
        Of ``time.monotonic()``.
    target
        Cost at which to stop: a proven bound.

    Returns
    -------
    tuple
        Cost and order, never worse than what was given.
    """
    while True:
        cost, order = _swap_ranks(case, order, rng, steps, deadline, target)
        if case.size == 1 or cost <= target or time.monotonic() >= deadline:
            return cost, order
        new_cost, order = _swap_gpus(case, order, rng, steps, deadline, target)
        if new_cost >= cost:
            return cost, order


def _swap_ranks(
    case: MappingProblem, order: IntArray, rng: np.random.Generator, steps: int, deadline: float, target: float
) -> tuple[int, IntArray]:
    """Swap whole ranks: all their GPUs change hands."""
    k, g = len(case.weights), case.size
    slots = order.reshape(k, g)
    far = case.distances if g == 1 else _between(case.distances[np.ix_(order, order)], k, g)
    far = far[np.ix_(order, order)] if g == 1 else far
    inside = case.cost(order) - round(float((case.weights * far).sum()) / 2)
    moved, saved = tabu(case.weights, far, None, rng, steps=steps, deadline=deadline, target=target - inside)
    return inside + saved, slots[moved].reshape(-1)


def _swap_gpus(
    case: MappingProblem, order: IntArray, rng: np.random.Generator, steps: int, deadline: float, target: float
) -> tuple[int, IntArray]:
    """Swap single GPUs of different ranks on one node."""
    node, rank = case.groups[order], np.arange(case.num_tasks) // case.size
    allowed = (node[:, None] == node) & (rank[:, None] != rank)
    far = case.distances[np.ix_(order, order)]
    moved, cost = tabu(case.traffic, far, allowed, rng, steps=steps, deadline=deadline, target=target)
    return cost, order[moved]


def _between(distances: FloatArray, k: int, g: int) -> FloatArray:
    """Shape (k, k): sum of distances between the GPUs of two ranks, zero diagonal."""
    out: FloatArray = distances.reshape(k, g, k, g).sum(axis=(1, 3))
    np.fill_diagonal(out, 0)
    return out


def tabu(
    weights: FloatArray,
    distances: FloatArray,
    allowed: np.ndarray | None,
    rng: np.random.Generator,
    *,
    steps: int,
    deadline: float,
    target: float,
    apart: bool = False,
) -> tuple[IntArray, int]:
    """
    Minimise the sum of ``weights[i, j] * distances[p[i], p[j]] / 2`` over permutations p, from the identity.

    With A = W D_p the swap of i and j changes the cost by A_ij + A_ji - A_ii - A_jj + 2 W_ij D_p(i, j); after a swap A
    changes by an outer product and two exchanged columns. Each step makes the best swap that does not put both back to
    where they were a short while ago, or the best of all if that beats everything so far.

    Returns
    -------
    tuple
        Permutation of least cost met, and its cost.

    Notes
    -----
    Taillard's robust tabu search (1991), tenures from 0.9 n to 1.1 n as there, without his aspiration by age.
    ``allowed`` (n, n) limits the pairs that may be swapped, ``apart`` leaves out pairs at distance 0.
    """
    n = len(weights)
    p = np.arange(n)
    far = distances.copy()
    product = weights @ far
    cost = best_cost = round(float((weights * far).sum()) / 2)
    best = p.copy()
    banned = np.zeros((n, n), dtype=np.int64)  # (item, place) until when
    forbidden = np.tri(n, dtype=bool) if allowed is None else np.tri(n, dtype=bool) | ~allowed
    if n < 2 or forbidden.all():
        return best, best_cost
    for step in range(1, steps + 1):
        if best_cost <= target or time.monotonic() >= deadline:
            break
        own = product.diagonal()
        delta = product + product.T - own[:, None] - own + 2 * weights * far
        delta[forbidden] = np.inf
        if apart:
            delta[far == 0] = np.inf
        i, j = divmod(int(delta.argmin()), n)
        if cost + delta[i, j] >= best_cost:
            until = banned[:, p]  # (i, j) until when item i may not go to the place of j
            still = until > step
            delta[still & still.T] = np.inf
            i, j = divmod(int(delta.argmin()), n)
            if delta[i, j] == np.inf:
                continue
        cost += round(float(delta[i, j]))
        product += np.outer(weights[:, j] - weights[:, i], far[i] - far[j])
        product[:, [i, j]] = product[:, [j, i]]
        far[[i, j]] = far[[j, i]]
        far[:, [i, j]] = far[:, [j, i]]
        tenure = rng.integers(int(0.9 * n), int(1.1 * n) + 2, size=2)
        banned[i, p[i]], banned[j, p[j]] = step + tenure[0], step + tenure[1]
        p[[i, j]] = p[[j, i]]
        if cost < best_cost:
            best_cost, best = cost, p.copy()
    return best, best_cost
