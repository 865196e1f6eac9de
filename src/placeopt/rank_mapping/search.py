"""Orders found without proof: grown along the tree of blocks, and improved by swaps in a tabu search."""

from __future__ import annotations

import time

import numpy as np

from placeopt.problem import IntArray
from placeopt.rank_mapping.case import FloatArray, MappingProblem
from placeopt.rank_mapping.evolution import POPULATION, evolve
from placeopt.rank_mapping.tabu_population import TabuPopulation

STEPS_PER_RANK = 10
"""Swaps that each search makes, times the number of ranks."""

MOST_ENTRIES = 1 << 20
"""Pairs of ranks up to which searches go side by side: 8 MB an array."""


def improve(
    case: MappingProblem, slots: IntArray, places: IntArray, rng: np.random.Generator, deadline: float, target: float
) -> IntArray:
    """
    Return the best order met by swaps of ranks and, for ranks of several GPUs, by swaps of GPUs inside their nodes.

    ``slots``, (k, g), are the GPUs that go together, along the tree; rank r begins in slot ``places[r]``, in other
    searches in slot r and where `grown` puts it. Ranks are swapped, then the GPUs of the best order, and so on as long
    as that gains; the search stops at the cost ``target``, a proven bound.
    """
    k, best = len(slots), slots[places].reshape(-1)
    count = max(1, min(POPULATION, MOST_ENTRIES // k**2))
    while True:
        before = case.cost(best)
        far = _between(case, slots)
        starts = [places, np.arange(k), *(_grown(case.weights, far, rng) for _ in range(count - 2))][:count]
        moved, _ = evolve(
            case.weights,
            far,
            np.array(starts),
            rng,
            steps=STEPS_PER_RANK,
            deadline=deadline,
            target=2 * target if case.size == 1 else -np.inf,  # of all ordered pairs
            patience=1,
        )
        found = slots[moved].reshape(-1)
        if case.size > 1:
            found = _swap_gpus(case, found, rng, deadline)
        best = min(best, found, key=case.cost)
        if case.size == 1 or not target < case.cost(best) < before or time.monotonic() >= deadline:
            return best
        slots, places = best.reshape(slots.shape)[np.argsort(moved)], moved


def _swap_gpus(case: MappingProblem, order: IntArray, rng: np.random.Generator, deadline: float) -> IntArray:
    """Swap single GPUs of different ranks on one node."""
    node, rank = case.groups[order], np.arange(case.num_tasks) // case.size
    barred = (node[:, None] != node) | (rank[:, None] == rank)
    search = TabuPopulation(case.traffic, case.distances, order[None], rng, barred=barred)
    search.run(STEPS_PER_RANK * case.num_tasks, deadline=deadline)
    return np.asarray(search.best_orders[0])


def _between(case: MappingProblem, slots: IntArray) -> FloatArray:
    """Shape (k, k): sum of distances between the GPUs of two slots, zero diagonal."""
    k, g = slots.shape
    out = case.distances[np.ix_(slots.ravel(), slots.ravel())].reshape(k, g, k, g).sum(axis=(1, 3))
    np.fill_diagonal(out, 0)
    return np.asarray(out)


def _grown(weights: FloatArray, distances: FloatArray, rng: np.random.Generator) -> IntArray:
    """
    Shape (k,): the place of each rank, given away one after the other from a random first rank on.

    Next comes the rank that gains most here: its traffic to those placed, times how much nearer they are than they are
    on the mean to the places left.
    """
    chosen: list[int] = []
    free = np.ones(len(weights), dtype=bool)
    gain = rng.random(len(weights))
    for place in range(len(weights)):
        rank = int(np.where(free, gain, -np.inf).argmax())
        chosen.append(rank)
        free[rank] = False
        if free.any():
            nearer = distances[place + 1 :, : place + 1].mean(axis=0) - distances[place + 1, : place + 1]
            gain = weights[:, chosen] @ nearer + rng.random(len(weights)) / 2  # numbers apart by less are alike
    return np.argsort(chosen)
