"""Pairs of jobs that meet, all at once, against every pair by itself."""

from itertools import combinations

import numpy as np
import pytest

from helpers.small_rounds import random_round
from placeopt.heuristics import greedy
from placeopt.problem import Placement, Problem, compile_problem
from placeopt.problem.state import holdings
from placeopt.terms.costs import colocated_pairs as module
from placeopt.terms.costs.colocated_pairs import colocated_pairs


def closest(problem: Problem, one: Placement, other: Placement) -> int | None:
    """0 GPU, 1 switch, 2 socket, 3 node; None where they share no node."""
    parts = (np.arange(problem.num_gpus), problem.gpu_switch, problem.gpu_socket, problem.gpu_node)
    for level, part in enumerate(parts):
        mine = {int(part[gpu]) for gpu in one.gpus} - {-1}
        if mine & {int(part[gpu]) for gpu in other.gpus}:
            return level
    return None


@pytest.mark.parametrize("at_once", [1, 1 << 21])
def test_every_pair_once_at_its_closest_level(at_once: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Random rounds, jobs over several nodes among them; in one portion, and in as many as there are nodes."""
    monkeypatch.setattr(module, "PAIRS_AT_ONCE", at_once)
    met = 0
    for seed in range(200):
        problem = compile_problem(random_round(np.random.default_rng(40_000 + seed)))
        allocation = greedy(problem, np.arange(problem.num_jobs)).allocation
        placed = [(job, p) for job, p in enumerate(allocation) if p is not None and p.gpus]
        held = holdings(problem, placed)
        found = [
            pair
            for a, b, level in colocated_pairs(problem, held.job, held.gpu)
            for pair in zip(a.tolist(), b.tolist(), level.tolist(), strict=True)
        ]
        expected = [
            (a, b, level)
            for (a, one), (b, other) in combinations(placed, 2)
            if (level := closest(problem, one, other)) is not None
        ]
        assert sorted(found) == sorted(expected)
        met += len(found)
    assert met > 80
