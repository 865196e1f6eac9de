"""A first order: ranks are dealt down the hierarchy, each block grown around a rank with the least traffic left."""

from __future__ import annotations

import time

import numpy as np

from placeopt.problem import IntArray
from placeopt.rank_mapping.case import FloatArray, MappingProblem
from placeopt.rank_mapping.hierarchy import Block, tables_of
from placeopt.rank_mapping.search import tabu

FINE = 64.0
"""Ways to centres are multiples of 1/64 or are rounded to them: the search counts in whole numbers."""

GREEDS = (1.0, 0.5, 0.1, 0.0)


def in_sequence(case: MappingProblem, root: Block) -> IntArray:
    """Ranks in their own order along the hierarchy's leaves: for rings and grids numbered row by row hard to beat."""
    by_node: dict[int, list[int]] = {}
    for gpu in _leaves(root):
        by_node.setdefault(int(case.groups[gpu]), []).append(gpu)
    return np.array([gpu for members in by_node.values() for gpu in members], dtype=np.int64)


def grown(case: MappingProblem, root: Block, rng: np.random.Generator, greed: float, deadline: float) -> IntArray:
    """
    Recursive partition: the tasks of a star are dealt to its children by greedy growth, and swapped between them.

    Down to the nodes whole ranks are dealt, inside them tasks. Swaps by a short tabu search (ours; Kernighan and Lin
    1970 have the two-way case) that sees only the ways between the children.

    Parameters
    ----------
    greed
        What traffic to tasks not dealt counts against traffic to the child's own, when the next is chosen: 1 keeps the
        cut of the child least, 0 its inside most.
    deadline
        Of ``time.monotonic()``: what is not dealt by then is dealt in sequence.
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
        return in_sequence(case, root)  # a table of several nodes tells nothing of where a rank may lie
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
