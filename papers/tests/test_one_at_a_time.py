"""The orders of arrival of FGD's protocol: Go's random numbers, how a list is filled up; and who is placed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from placeopt import BadInput
from placeopt.build import instance, job, machine
from placeopt.heuristics import Candidates
from placeopt.problem import State
from placeopt_papers.one_at_a_time.arrivals import arrivals_of
from placeopt_papers.one_at_a_time.go_random import GoRandom
from placeopt_papers.one_at_a_time.playing import place_by
from placeopt_papers.one_at_a_time.points import RoundedScore
from placeopt_papers.one_at_a_time.protocol import OneAtATime

INSTANCES = Path(__file__).resolve().parents[2] / "instances"


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


def test_points_of_gpu_packing() -> None:
    """The four cases of the authors' own test: 48 and 93 on GPUs 200, 1000, 1000, 500; 29 and 25 on idle nodes."""
    machines = [machine("four", gpus=4), machine("eight", gpus=8)]
    jobs = [job("pair", gpus=2), job("x", gpu_milli=800), job("y", gpu_milli=500), job("z", gpu_milli=200)]
    nodes = instance(3, jobs, machines=[machine()]).cluster.nodes
    made = [n.model_copy(update={"machine": m}) for n, m in zip(nodes, ("four", "four", "eight"), strict=True)]
    problem = arrivals_of(instance(made, jobs, machines=machines)).problem
    state = State(problem)
    state.gpu_free_milli[[0, 3]] = 200, 500
    candidates = Candidates(state, RoundedScore("gpu_packing", problem))
    pair, share = (problem.options_of(j)[0] for j in (0, 3))
    assert candidates.scores(pair).tolist() == [-48, -29, -25]
    assert candidates.scores(share)[0] == -98


@pytest.mark.parametrize("score", ["fgd:points", "gpu_clustering:points", "best_fit", "random"])
def test_a_job_that_fits_is_placed(score: str) -> None:
    """Two GPUs of one node: two whole ones fit, the third fails, and so does one of its kind after it."""
    arrivals = arrivals_of(instance(1, [job(f"j{i}") for i in range(4)], machines=[machine(gpus=2)]))
    assert place_by(score, arrivals, np.arange(4), 0).tolist() == [True, True, False, False]
    with pytest.raises(BadInput, match="no score 'fastest'; known: first_fit, "):
        place_by("fastest", arrivals, np.arange(4), 0)


def test_fgd_on_openb_as_published() -> None:
    """Seed 42 of the authors' expected results: 95.14 % allocated at 100 % arrived, 95.29 at 130."""
    found = OneAtATime(INSTANCES, "default", 42).allocated("fgd:points")
    assert (round(found[100], 2), round(found[130], 2)) == (95.14, 95.29)


def test_a_list_that_is_not_there_is_named(tmp_path: Path) -> None:
    """With the file."""
    with pytest.raises(BadInput, match="openb-default"):
        OneAtATime(tmp_path, "default", 42).allocated("fgd")
