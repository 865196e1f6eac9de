"""The orders of arrival of FGD's protocol: Go's random numbers, and how a list is filled up."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "bench"))

from arrivals import Arrivals
from builders import instance, job
from go_random import GoRandom
from placeopt.problem import compile_problem


def test_gos_numbers() -> None:
    """What every Go program printed that never seeded its generator (that is seed 1)."""
    assert GoRandom(1).int63() == 5_577_006_791_947_779_410
    random = GoRandom(1)
    assert [random.intn(100) for _ in range(10)] == [81, 87, 47, 59, 81, 18, 25, 40, 56, 0]


def test_shuffle_is_a_permutation_by_the_seed() -> None:
    """The same for the same seed, another for another."""
    found = []
    for seed in (42, 42, 43):
        items: list[object] = list(range(50))
        GoRandom(seed).shuffle(items)
        assert sorted(items, key=str) == sorted(range(50), key=str)
        found.append(items)
    assert found[0] == found[1] != found[2]


@pytest.mark.parametrize(("count", "expected"), [(4, 10), (20, 10)])
def test_filled_up_or_thinned_to_130_percent(count: int, expected: int) -> None:
    """Two nodes of four GPUs: 10.4 GPUs. Whole GPUs are drawn until ten are there, or removed until no more are."""
    problem = compile_problem(instance(2, [job(f"j{i:02}") for i in range(count)]))
    arrivals = Arrivals(problem, np.full(count, 1000), 8000)
    order = arrivals.order(42)
    assert len(order) == expected
    assert set(order.tolist()) <= set(range(count))


def test_allocated_by_percent_arrived() -> None:
    """Four whole GPUs on eight: 12.5, 25, 37.5, 50 % arrived, half to even; the third one fails."""
    problem = compile_problem(instance(2, [job(f"j{i}") for i in range(4)]))
    arrivals = Arrivals(problem, np.full(4, 1000), 8000)
    placed = np.array([True, True, False, True])
    assert arrivals.allocated(np.arange(4), placed) == {12: 12.5, 25: 25.0, 38: 25.0, 50: 37.5}
