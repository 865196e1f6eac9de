"""Fiduccia-Mattheyses against every split of small graphs."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placeopt.heuristics.drb.fiduccia_mattheyses import cut, grown, least_cut
from placeopt.problem import IntArray
from strategies import Choice, make_graph, seeded, strategy


def make_weights(choice: Choice, least: int = 2, most: int = 9) -> IntArray:
    """Draw a graph with weights of 1 to 4 between half of the pairs."""
    return make_graph(choice, least=least, most=most, heaviest=4, density=0.5)


def exact_cut(weights: IntArray, limits: tuple[int, int]) -> int:
    """Return the smallest cut of all splits within the limits."""
    splits = (side for side in product((0, 1), repeat=len(weights)) if sum(side) <= limits[1])
    return min(
        sum(int(weights[a, b]) for a in range(len(side)) for b in range(a) if side[a] != side[b])
        for side in splits
        if len(side) - sum(side) <= limits[0]
    )


def ring(n: int) -> IntArray:
    return np.roll(np.eye(n, dtype=np.int64), 1, axis=1) + np.roll(np.eye(n, dtype=np.int64), -1, axis=1)


def grid(rows: int, columns: int) -> IntArray:
    at = np.array([(i, j) for i in range(rows) for j in range(columns)])
    return (np.abs(at[:, None] - at[None]).sum(axis=2) == 1).astype(np.int64)


def halved(weights: IntArray, slack: int = 0) -> IntArray:
    """Split a graph in halves, which may differ by ``slack``."""
    first = (len(weights) + 1) // 2
    return least_cut(weights, (first + slack, first + slack), grown(weights, (first, len(weights) - first)))


@given(weights=strategy(make_weights)(), slack=st.integers(0, 2))
def test_never_better_than_the_least_cut_and_within_limits(weights: IntArray, slack: int) -> None:
    half = (len(weights) + 1) // 2 + slack
    side = halved(weights, slack)
    assert set(side.tolist()) <= {0, 1}
    assert max(side.sum(), (1 - side).sum()) <= half
    between = sum(int(weights[a, b]) for a in range(len(side)) for b in range(a) if side[a] != side[b])
    assert cut(weights, side[None])[0] == between >= exact_cut(weights, (half, half))


def test_meets_the_least_cut_on_most_small_graphs() -> None:
    met = 0
    for number in range(60):
        weights = make_weights(seeded(number), 8, 8)
        met += cut(weights, halved(weights)[None])[0] == exact_cut(weights, (4, 4))
    assert met >= 54


@pytest.mark.parametrize(
    ("weights", "least"),
    [(ring(8), 2), (ring(12), 2), (grid(4, 4), 4), (grid(2, 8), 2), (ring(64), 2), (grid(8, 8), 8)],
)
def test_finds_the_least_cut_of_simple_graphs(weights: IntArray, least: int) -> None:
    side = halved(weights)
    assert cut(weights, side[None])[0] == least
    assert side.sum() == len(weights) // 2


@given(weights=strategy(make_weights)(12, 12), seed=st.integers(0, 99))
def test_no_split_cuts_more_once_refined(weights: IntArray, seed: int) -> None:
    sides = np.random.default_rng(seed).integers(0, 2, (3, 12))
    limits = int((1 - sides).sum(axis=1).max()), int(sides.sum(axis=1).max())
    for begun in (sides, *sides[:, None]):
        side = least_cut(weights, limits, begun)
        assert cut(weights, side[None])[0] <= cut(weights, begun).min()
        assert len(side) - side.sum() <= limits[0]
        assert side.sum() <= limits[1]


def test_halves_grow_to_their_size_from_different_vertices() -> None:
    sides = grown(ring(40), (15, 25), starts=5)
    assert (1 - sides).sum(axis=1).tolist() == [15] * 5
    assert (cut(ring(40), sides) == 2).all()
    assert (sides[range(5), [0, 10, 20, 29, 39]] == 0).all()
