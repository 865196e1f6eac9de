"""Orders found without proof: grown down the hierarchy, and improved by swaps in a tabu search."""

from __future__ import annotations

import time

import numpy as np

from placeopt.problem import IntArray
from placeopt.rank_mapping.case import FloatArray, MappingProblem
from placeopt.rank_mapping.hierarchy import Block, tables_of

FINE = 64.0
"""Ways to centres are multiples of 1/64 or are rounded to them: the search counts in whole numbers."""

GREEDS = (1.0, 0.5, 0.1, 0.0)


def improve(
    case: MappingProblem, order: IntArray, rng: np.random.Generator, *, steps: int, deadline: float, target: float
) -> tuple[int, IntArray]:
    """
    Improve an order by swaps of ranks and, for ranks of several GPUs, by swaps of GPUs inside their nodes.

    Returns cost and order, never worse than what was given. ``steps`` swaps of ranks are made; the search stops at the
    cost ``target``, a proven bound.
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

    Returns the permutation of least cost met, and its cost. With A = W D_p the swap of i and j changes the cost by A_ij
    + A_ji - A_ii - A_jj + 2 W_ij D_p(i, j); after a swap A changes by an outer product and two exchanged columns. Each
    step makes the best swap that does not put both back to where they were a short while ago, or the best of all if
    that beats everything so far. Taillard's robust tabu search (1991), tenures from 0.9 n to 1.1 n as there, without
    his aspiration by age. ``allowed`` (n, n) limits the pairs that may be swapped, ``apart`` leaves out pairs at
    distance 0.
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
        diagonal = product.diagonal()
        delta = product + product.T - diagonal[:, None] - diagonal + 2 * weights * far
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


def in_sequence(case: MappingProblem, root: Block) -> IntArray:
    """Ranks in their own order along the hierarchy's leaves: hard to beat for rings and grids numbered row by row."""
    by_node: dict[int, list[int]] = {}
    for gpu in _leaves(root):
        by_node.setdefault(int(case.groups[gpu]), []).append(gpu)
    return np.array([gpu for members in by_node.values() for gpu in members], dtype=np.int64)


def grown(case: MappingProblem, root: Block, rng: np.random.Generator, greed: float, deadline: float) -> IntArray:
    """
    Recursive partition: the tasks of a star are dealt to its children by greedy growth, and swapped between them.

    Down to the nodes whole ranks are dealt, inside them tasks. Swaps by a short tabu search (ours; Kernighan and Lin
    1970 have the two-way case) that considers only the ways between the children. ``greed`` is the weight of traffic to
    tasks not dealt against traffic to the child's own, when the next is chosen: 1 keeps the cut of the child least, 0
    its inside most. What is not dealt by the deadline is dealt in sequence.
    """
    out = np.full(case.num_tasks, -1, dtype=np.int64)

    def deal(block: Block, tasks: IntArray) -> None:
        if not block.children:
            out[tasks] = block.members
            return
        children = sorted(block.children, key=lambda c: -len(c.members))
        unit = case.size if all(child.closed for child in children) else 1
        sizes = [len(child.members) // unit for child in children]
        heads = tasks.reshape(-1, unit)  # (units, unit)
        between = case.traffic[np.ix_(heads[:, 0], heads[:, 0])] * unit**2  # whole ranks or single tasks
        np.fill_diagonal(between, 0)
        child_of = np.repeat(np.arange(len(children)), sizes)  # (units,) place -> child
        chosen = np.arange(len(heads))
        if time.monotonic() < deadline and between.any() and max(sizes) > 1:
            chosen = _grow(between, sizes, greed, rng)
            ways = np.array([child.weight for child in children])[child_of]
            far = np.where(child_of[:, None] == child_of, 0.0, ways[:, None] + ways) * FINE
            moved, _ = tabu(
                between[np.ix_(chosen, chosen)],
                far,
                None,
                rng,
                steps=3 * len(heads),
                deadline=deadline,
                target=0,
                apart=True,
            )
            place = np.empty_like(moved)
            place[moved] = np.arange(len(moved))
            chosen = chosen[place]
        for i, child in enumerate(children):
            deal(child, np.sort(heads[chosen[child_of == i]].reshape(-1)))

    if case.size > 1 and any(len(np.unique(case.groups[list(t.members)])) > 1 for t in tables_of(root)):
        return in_sequence(case, root)  # a table of several nodes does not show where a rank may be
    deal(root, np.arange(case.num_tasks))
    return out


def _leaves(block: Block) -> list[int]:
    return [gpu for child in block.children for gpu in _leaves(child)] if block.children else list(block.members)


def _grow(between: FloatArray, sizes: list[int], greed: float, rng: np.random.Generator) -> IntArray:
    """Shape (units,): units in the order of the children that they are dealt to."""
    count = len(between)
    noise = rng.random(count) * 1e-3
    to_left = between.sum(axis=1)  # traffic to those neither dealt nor chosen
    dealt = np.zeros(count, dtype=bool)
    out: list[int] = []
    for size in sizes:
        to_own = np.zeros(count)
        for i in range(size):
            score = to_left + noise if i == 0 else greed * to_left - to_own * 1.01 + noise  # begin at the rim
            score[dealt] = np.inf
            best = int(score.argmin())
            dealt[best] = True
            out.append(best)
            to_own += between[best]
            to_left -= between[best]
    return np.array(out, dtype=np.int64)
