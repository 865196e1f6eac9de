"""The orders of arrival of FGD's protocol: Go's random numbers, and how a list is filled up."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "bench"))

from arrivals import arrivals_of
from builders import instance, job, machine
from go_random import GoRandom
from hindsight import hindsight, placeable
from own_policies import refusing, with_moves
from placeopt.heuristics import Candidates
from placeopt.model import Policy
from placeopt.problem import State
from points import InPoints


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
    arrivals = arrivals_of(instance(2, [job(f"j{i:02}") for i in range(count)]))
    order = arrivals.order(42)
    assert len(order) == expected
    assert set(order.tolist()) <= set(range(count))


def test_allocated_by_percent_arrived() -> None:
    """Four whole GPUs on eight: 12.5, 25, 37.5, 50 % arrived, half to even; the third one fails."""
    arrivals = arrivals_of(instance(2, [job(f"j{i}") for i in range(4)]))
    placed = np.array([True, True, False, True])
    assert arrivals.allocated(np.arange(4), placed) == {12: 12.5, 25: 25.0, 38: 25.0, 50: 37.5}


def test_nodes_are_shuffled_by_the_seed() -> None:
    """Another order of nodes for another seed, the same pods; a permutation."""
    assert sorted(GoRandom(1).permutation(50)) == list(range(50))
    arrivals = arrivals_of(instance(9, [job("j")]))
    (first, order), (again, _), (other, _) = (arrivals.by_seed(seed) for seed in (42, 42, 43))
    assert first.problem.node_ids == again.problem.node_ids
    assert sorted(other.problem.node_ids) == sorted(first.problem.node_ids)
    assert other.problem.node_ids != first.problem.node_ids
    assert order.tolist() == arrivals.order(42).tolist()


def test_hindsight_is_what_fits_or_what_came() -> None:
    """Eight GPUs; jobs of 600 fit one a GPU. After five of them 3,000 (37.5 %), after twelve never more than 4,800."""
    arrivals = arrivals_of(instance(2, [job(f"j{i}", gpu_milli=600) for i in range(12)]))
    order = np.arange(12)
    assert placeable(arrivals, order[:5]) == 3000
    assert placeable(arrivals, order) == 4800
    assert hindsight(arrivals, order, 38) == 37.5
    assert hindsight(arrivals, order, 90) == 60.0


def test_hindsight_chooses_among_what_came() -> None:
    """One GPU; first a job of 600, then one of 1000 in whose place it would be left out."""
    arrivals = arrivals_of(instance(1, [job("a", gpu_milli=600), job("b")], machines=[machine(gpus=1)]))
    assert placeable(arrivals, np.arange(2)) == 1000


def test_points_of_gpu_packing() -> None:
    """The four cases of the authors' own test: 48 and 93 on GPUs 200, 1000, 1000, 500; 29 and 25 on idle nodes."""
    machines = [machine("four", gpus=4), machine("eight", gpus=8)]
    jobs = [job("pair", gpus=2), job("x", gpu_milli=800), job("y", gpu_milli=500), job("z", gpu_milli=200)]
    nodes = instance(3, jobs, machines=[machine()]).cluster.nodes
    made = [n.model_copy(update={"machine": m}) for n, m in zip(nodes, ("four", "four", "eight"), strict=True)]
    problem = arrivals_of(instance(made, jobs, machines=machines)).problem
    state = State(problem)
    state.gpu_free_milli[[0, 3]] = 200, 500
    candidates = Candidates(state, InPoints("gpu_packing", problem))
    pair, share = (problem.options_of(j)[0] for j in (0, 3))
    assert candidates.scores(pair).tolist() == [-48, -29, -25]
    assert candidates.scores(share)[0] == -98


def test_who_knows_the_horizon_refuses_what_packs_badly() -> None:
    """Four GPUs; four whole ones and four times 810 come in turns: only whole ones are taken. Moves refuse nobody."""
    jobs = [job(f"j{i}", gpu_milli=1000 if i % 2 else 810) for i in range(8)]
    arrivals = arrivals_of(instance(1, jobs, policy=Policy(share_mode="fraction")))
    order = np.arange(8)
    demand = round(100 * int(arrivals.milli.sum()) / arrivals.capacity)
    assert refusing(demand)(arrivals, order, 0).tolist() == [False, True] * 4
    assert with_moves(3)(arrivals, order, 0).tolist() == [True] * 4 + [False] * 4
