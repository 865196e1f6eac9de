"""Fiduccia-Mattheyses against every balanced cut of small graphs, and the invariants of its buckets."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from placeopt.heuristics.drb.fiduccia_mattheyses import Buckets, Graph, bisect, graph_of, refine
from strategies import Choice, make_graph, seeded, strategy


def least_cut(graph: Graph, limits: tuple[int, int]) -> int | None:
    """Return the smallest cut of all splits within the limits, None if there is none."""
    best = None
    for side in product((0, 1), repeat=len(graph.sizes)):
        weight = [sum(s for s, at in zip(graph.sizes, side, strict=True) if at == y) for y in (0, 1)]
        if weight[0] <= limits[0] and weight[1] <= limits[1]:
            cut = graph.cut(side)
            best = cut if best is None else min(best, cut)
    return best


def make_sized_graph(choice: Choice, least: int = 2, most: int = 9) -> Graph:
    """Draw a graph whose vertices have sizes 1 to 3."""
    weights = make_graph(choice, least=least, most=most, heaviest=4, density=0.5)
    return graph_of(weights, [choice.number(1, 3) for _ in range(len(weights))])


def ring(n: int) -> Graph:
    return graph_of(np.roll(np.eye(n, dtype=np.int64), 1, axis=1) + np.roll(np.eye(n, dtype=np.int64), -1, axis=1))


def grid(rows: int, columns: int) -> Graph:
    at = np.array([(i, j) for i in range(rows) for j in range(columns)])
    return graph_of((np.abs(at[:, None] - at[None]).sum(axis=2) == 1).astype(np.int64))


@given(graph=strategy(make_sized_graph)(), seed=st.integers(0, 99))
def test_never_better_than_the_least_cut_and_within_limits(graph: Graph, seed: int) -> None:
    rng = np.random.default_rng(seed)
    half = (sum(graph.sizes) + 1) // 2 + 1
    least = least_cut(graph, (half, half))
    found = bisect(graph, (half, half), rng)
    assert (found is None) or least is not None
    if found is not None and least is not None:
        side, cut = found
        assert cut == graph.cut(side) >= least
        assert all(sum(s for s, at in zip(graph.sizes, side, strict=True) if at == y) <= half for y in (0, 1))


def test_meets_the_least_cut_on_most_small_graphs() -> None:
    rng = np.random.default_rng(7)
    met = 0
    for number in range(60):
        graph = make_sized_graph(seeded(number), 8, 8)
        half = (sum(graph.sizes) + 1) // 2 + 1
        found, least = bisect(graph, (half, half), rng), least_cut(graph, (half, half))
        met += found is not None and found[1] == least
    assert met >= 54


@pytest.mark.parametrize(
    ("graph", "least"), [(ring(8), 2), (ring(12), 2), (grid(4, 4), 4), (grid(2, 8), 2), (ring(64), 2), (grid(8, 8), 8)]
)
def test_finds_the_least_cut_of_simple_graphs(graph: Graph, least: int) -> None:
    n = len(graph.sizes)
    found = bisect(graph, (n // 2, n // 2), np.random.default_rng(0))
    assert found[1] == least
    assert sum(found[0]) == n // 2


@given(graph=strategy(make_sized_graph)(12, 12), seed=st.integers(0, 99))
def test_refining_never_makes_a_cut_worse_and_leaves_fixed_vertices(graph: Graph, seed: int) -> None:
    rng = np.random.default_rng(seed)
    side = rng.integers(0, 2, 12).tolist()
    limits = tuple(max(sum(s for s, at in zip(graph.sizes, side, strict=True) if at == y), 1) for y in (0, 1))
    after, cut = refine(graph, side, (limits[0], limits[1]), frozenset({0, 5}))
    assert cut == graph.cut(after) <= graph.cut(side)
    assert (after[0], after[5]) == (side[0], side[5])
    assert all(sum(s for s, at in zip(graph.sizes, after, strict=True) if at == y) <= limits[y] for y in (0, 1))


def test_buckets_hand_out_the_highest_gain_that_fits() -> None:
    rng = np.random.default_rng(1)
    buckets, held = Buckets(), dict[int, int]()
    sizes = rng.integers(1, 6, 30).tolist()
    for _ in range(2000):
        vertex, action = int(rng.integers(30)), rng.random()
        if action < 0.6:
            held[vertex] = int(rng.integers(-20, 21))
            buckets.put(vertex, held[vertex])
        elif vertex in held:
            buckets.take(vertex)
            del held[vertex]
        most = int(rng.integers(0, 7))
        fitting = {v: g for v, g in held.items() if sizes[v] <= most}
        best = buckets.best(sizes, most)
        assert buckets.gain == held
        if best is None:
            assert not fitting
        else:
            assert held[best] == max(fitting.values())


def test_of_equal_gains_the_last_one_in_comes_first() -> None:
    buckets = Buckets()
    for vertex in (3, 1, 2):
        buckets.put(vertex, 5)
    assert buckets.best([1] * 4, 1) == 2
