"""Prices of shares: by hand, and against a linear program over all patterns."""

from itertools import product

import numpy as np
import pytest

from helpers.night import seeds
from placeopt.heuristics.scores.cutting_stock import GRID, MOST_SIZES, SharePrices, share_prices
from placeopt.linear import NO_LOWER, ModelBuilder
from placeopt.solvers import SolveOptions, load

GPU = 720_720
"""Units of a GPU in the linear program, whose rows are in integers: divisible by all that a pattern can have."""


def prices(**demand: int) -> SharePrices:
    """Prices for ``s190=3``: three shares of 190."""
    sizes = sorted((int(name[1:]), count) for name, count in demand.items())
    return share_prices(np.array([size for size, _ in sizes]), np.array([float(count) for _, count in sizes]))


def test_few_small_shares_are_worth_nothing_beside_many_large_ones() -> None:
    """Each 810 spends a GPU and leaves 190, more than there are shares of 190 for."""
    found = prices(s190=1, s810=5)
    assert found.worth.tolist() == pytest.approx([0, 1])
    assert found.level[[190, 809, 810, 1000]].tolist() == pytest.approx([0, 0, 1, 1])


def test_many_small_shares_set_the_price_of_large_ones() -> None:
    """GPUs of five 190; beside an 810 one fits."""
    found = prices(s190=50, s810=5)
    assert found.worth.tolist() == pytest.approx([0.2, 0.8])
    assert found.level[[189, 190, 379, 380, 809, 810, 1000]].tolist() == pytest.approx([0, 0.2, 0.2, 0.4, 0.8, 0.8, 1])


def test_what_a_gpu_loses() -> None:
    """A 190 on an empty GPU: four more fit, nothing is lost. On 500: of 2 x 190 one is left. On 400 the same."""
    found = prices(s190=50, s810=5)
    lost = found.loss(190)
    assert lost[[1000, 500, 400, 190]].tolist() == pytest.approx([0, 0, 0, 0])
    assert found.loss(810)[[1000, 900, 810]].tolist() == pytest.approx([0, 0, 0])
    assert found.loss(500)[1000] == pytest.approx(1 - 0.4 - 0.4), "not priced: worth the shares that fit into it"


@pytest.mark.parametrize("seed", seeds(12))
def test_duals_of_all_patterns(seed: int) -> None:
    """The most that the demand can be worth while no pattern is worth more than a GPU; by a linear program."""
    rng = np.random.default_rng(seed)
    sizes = np.unique(rng.integers(3, 20, rng.integers(1, 6)) * 50)
    sizes = sizes[sizes < 1000]
    demand = rng.integers(1, 50, len(sizes)).astype(float)
    found = share_prices(sizes, demand)
    ranges = [range(1000 // size + 1) for size in sizes.tolist()]
    patterns = [p for p in product(*ranges) if 0 < np.dot(p, sizes) <= 1000]
    assert max(np.dot(p, found.worth) for p in patterns) <= 1 + 1e-6
    builder = ModelBuilder()
    columns = builder.add_variables(0, GPU, count=len(sizes))
    for pattern in patterns:
        builder.add_row(columns, np.array(pattern, dtype=np.int64), NO_LOWER, GPU)
    builder.set_objective(columns, demand.astype(np.int64), "max")
    solution = load("highs")(builder.build(), SolveOptions(time_limit_s=10, relax=True))
    assert demand @ found.worth == pytest.approx(float(demand @ solution.relaxed_values[columns]) / GPU, rel=1e-4)


def test_many_sizes_are_rounded_up() -> None:
    """What fits together when rounded up is never worth more than a GPU."""
    rng = np.random.default_rng(0)
    sizes = np.unique(rng.integers(1, 1000, 3 * MOST_SIZES))
    found = share_prices(sizes, rng.integers(1, 50, len(sizes)).astype(float))
    assert len(found.worth) == len(sizes)
    assert found.level[1000] == pytest.approx(1)
    for _ in range(200):
        chosen = rng.choice(len(sizes), 12)
        fits = np.cumsum(-(-sizes[chosen] // GRID) * GRID) <= 1000
        assert found.worth[chosen][fits].sum() <= 1 + 1e-6


def test_no_shares() -> None:
    """Whole GPUs alone: nothing that is left of one is worth anything."""
    found = share_prices(np.zeros(0, dtype=np.int64), np.zeros(0))
    assert found.level.tolist() == [0.0] * 1001
