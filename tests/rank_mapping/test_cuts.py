"""Lower bounds on cuts, each against all sets or all partitions of small graphs."""

from itertools import combinations, permutations

import numpy as np

from helpers.graphs import graph, random_graph, ring
from placeopt.rank_mapping.bound import least_assignment
from placeopt.rank_mapping.connected import ConnectedCuts
from placeopt.rank_mapping.cuts import CutBounds, congestion, least_cut, partition_bound


def cut(weights: np.ndarray, members: tuple[int, ...]) -> int:
    """Traffic that leaves the set."""
    held = np.isin(np.arange(len(weights)), members)
    return int(weights[np.ix_(held, ~held)].sum())


def test_bounds_on_a_set_hold() -> None:
    """All sets of all sizes of 40 graphs; listing connected sets is exact up to adjacency of the pieces."""
    rng = np.random.default_rng(0)
    for _ in range(40):
        n = int(rng.integers(2, 9))
        weights = random_graph(rng, n).astype(float)
        bounds = CutBounds(weights, tuple(range(1, n)))
        least = {s: min(cut(weights, c) for c in combinations(range(n), s)) for s in range(1, n)}
        assert least_cut(weights) == min(least.values())
        for s, true in least.items():
            assert bounds.single(s) <= true
            assert s * (n - s) / congestion(weights) <= true + 1e-9
            assert bounds.most(s) >= max(cut(weights, c) for c in combinations(range(n), s))


def test_bounds_on_a_partition_hold() -> None:
    """Six vertices in three sets of two, and eight in two of four: all partitions."""
    rng = np.random.default_rng(1)
    for _ in range(15):
        for n, size in ((6, 2), (8, 4)):
            weights = random_graph(rng, n).astype(float)

            def best(left: tuple[int, ...], size: int = size, weights: np.ndarray = weights) -> int:
                if not left:
                    return 0
                first, *rest = left
                return min(
                    cut(weights, (first, *c)) + best(tuple(v for v in rest if v not in c))
                    for c in combinations(rest, size - 1)
                )

            true = best(tuple(range(n)))
            assert partition_bound(weights, size) <= true + 1e-6
            assert ConnectedCuts(weights, size).shared(size) <= true
            assert CutBounds(weights, (size,)).shared(size) <= true


def test_ring_grid_and_complete_graph() -> None:
    """Two edges leave an arc; four a 2 x 2 corner of a 4 x 4 grid, and its half; s (n - s) a set of all to all."""
    assert [CutBounds(ring(12).astype(float), (6,)).single(s) for s in (1, 4, 6)] == [2, 2, 2]
    edges = {(r, r + 1): 1 for r in range(16) if r % 4 < 3} | {(r, r + 4): 1 for r in range(12)}
    grid = CutBounds(graph(16, edges).astype(float), (8,))
    assert [grid.single(s) for s in (1, 2, 4, 8)] == [2, 3, 4, 4]
    complete = CutBounds(3 * (np.ones((16, 16)) - np.eye(16)), (8,))
    assert [complete.single(s) for s in (1, 4, 8)] == [45, 144, 192]
    assert complete.shared(4) == 4 * 144


def test_connected_sets_beyond_one_word() -> None:
    """70 vertices take two words of bits: arcs of a ring of 70 are left by two edges, and nothing is listed twice."""
    cuts = ConnectedCuts(ring(70).astype(float), 35)
    assert cuts.single(35) == 2
    assert cuts.shared(35) == 4


def test_least_assignment() -> None:
    """By hand 2 + 6 + 3, where taking each row's least in turn costs 0 + 5 + 9; and against all permutations."""
    assert least_assignment(np.array([[0.0, 2.0, 4.0], [1.0, 5.0, 6.0], [3.0, 7.0, 9.0]])) == 11
    rng = np.random.default_rng(2)
    for _ in range(30):
        n = int(rng.integers(1, 6))
        costs = rng.integers(0, 9, (n, n)) / 2
        assert least_assignment(costs) == min(sum(costs[i, p[i]] for i in range(n)) for p in permutations(range(n)))
