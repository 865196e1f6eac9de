"""Quadratic assignment: optima against brute force, the bound below them, files read or refused."""

from itertools import permutations

import numpy as np
import pytest

from placeopt import BadInput
from placeopt.rank_mapping import parse_qaplib, solve_quadratic


def cost(flows, distances, order):
    return int((flows * distances[np.ix_(order, order)]).sum())


def drawn(seed, n, *, symmetric):
    rng = np.random.default_rng(seed)
    pair = rng.integers(0, 9, (2, n, n))
    if symmetric:
        pair = pair + pair.transpose(0, 2, 1)
    pair[:, np.arange(n), np.arange(n)] = 0
    return pair[0], pair[1]


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("seed", range(10))
def test_small_problems_end_at_the_optimum_above_their_bound(seed, symmetric):
    flows, distances = drawn(seed, 6, symmetric=symmetric)
    least = min(cost(flows, distances, np.array(order)) for order in permutations(range(6)))
    found = solve_quadratic(flows, distances, time_limit_s=60, seed=seed, generations=1)
    assert found.cost == cost(flows, distances, found.order) == least
    assert found.bound <= least
    assert found.optimal == (found.bound == least)


def test_the_same_seed_and_budget_give_the_same_order():
    flows, distances = drawn(5, 7, symmetric=False)
    one, two = (solve_quadratic(flows, distances, time_limit_s=60, seed=7, generations=1) for _ in range(2))
    assert one.order.tolist() == two.order.tolist()


@pytest.mark.parametrize("data", [b"", b"0", b"2 1 2 3", b"2 0 1 1 0 0 1 x 0", b"2 0 1 1 0 0 1 1 0 5"])
def test_files_that_are_not_two_matrices_are_refused(data):
    with pytest.raises(BadInput, match="problem"):
        parse_qaplib(data, "problem")


def test_negative_flows_are_refused():
    with pytest.raises(BadInput, match="flows"):
        solve_quadratic(-np.ones((2, 2), dtype=np.int64), np.ones((2, 2), dtype=np.int64), time_limit_s=1)
