"""Jobs that compete for who is next."""

from __future__ import annotations

import numpy as np
import pytest

from helpers.small_rounds import random_round
from placeopt import solve, violations
from placeopt.build import instance, job, machine, node
from placeopt.heuristics import greedy, order_jobs, window
from placeopt.problem import compile_problem


@pytest.mark.parametrize("seed", range(12))
def test_a_window_of_one_is_greedy(seed: int) -> None:
    """Nobody to compete with."""
    problem = compile_problem(random_round(np.random.default_rng(seed)))
    order = order_jobs(problem, "fcfs")
    assert window(problem, order, "fgd", width=1).allocation == greedy(problem, order, "fgd").allocation


@pytest.mark.parametrize("seed", range(12))
def test_plans_keep_every_rule_and_repeat(seed: int) -> None:
    """With every feature."""
    round_ = random_round(np.random.default_rng(100 + seed))
    plans = [solve(round_, method="fgd-window", deterministic=True) for _ in range(2)]
    assert violations(round_, plans[0]) == []
    assert plans[0] == plans[1]


def test_a_job_without_stranding_goes_first() -> None:
    """
    A GPU each on two nodes, one of them with few cores. First in the queue a job of half a GPU, which would make the
    other half useless to the many that want whole ones; then one of a whole GPU, which spoils nothing and goes first.
    """
    nodes = [node("n0"), node("n1", "small")]
    machines = [machine(gpus=1), machine("small", gpus=1, cpu_millicores=1_000)]
    jobs = [job("half", gpu_milli=500), *(job(f"whole{i}") for i in range(8))]
    problem = compile_problem(instance(nodes, jobs, machines=machines))
    order = order_jobs(problem, "fcfs")
    assert greedy(problem, order, "fgd").allocation[0] is not None
    assert window(problem, order, "fgd").allocation[0] is None
    assert sum(placement is not None for placement in window(problem, order, "fgd").allocation) == 2


def test_time_ends_it() -> None:
    """Jobs that were not reached are named."""
    problem = compile_problem(instance(2, [job(f"j{i}") for i in range(5)]))
    result = window(problem, order_jobs(problem, "fcfs"), "fgd", deadline=0.0)
    assert len(result.not_reached) == 5
