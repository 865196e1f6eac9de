"""SWAF: shapes and allowances by hand, and random rounds through the referee."""

import numpy as np
import pytest

from helpers.plan_records import plan_of
from helpers.small_rounds import random_round
from placeopt import solve
from placeopt.build import instance, job, option
from placeopt.check import violations
from placeopt.heuristics import order_jobs, swaf
from placeopt.heuristics.job_orders import waiting_allowances
from placeopt.model import Job
from placeopt.problem import compile_problem

SHAPES = (
    option("1", gpus=1, rate_milli=2_000, latency_ms=120_000, value=10),
    option("4", gpus=4, rate_milli=6_000, latency_ms=40_000),
    option("2x4", workers=2, gpus=4, workers_per_node_max=1, rate_milli=8_000, latency_ms=30_000),
)


def training(name: str, **fields: int) -> Job:
    """A job with the three shapes."""
    return job(name, options=SHAPES, **fields)


def evaluated(*jobs: Job, now_ms: int = 0) -> list[tuple[str, int]]:
    """Of every job: the option evaluated on, and the allowance in seconds. Four nodes of four GPUs."""
    problem = compile_problem(instance(4, jobs, now_ms=now_ms))
    found = waiting_allowances(problem)
    names = [problem.options.name[o] if o >= 0 else "none" for o in found.option.tolist()]
    return list(zip(names, (found.slack_ms // 1000).tolist(), strict=True))


def test_the_best_rate_for_its_cost_that_ends_in_time() -> None:
    """
    Costs 1/16 + 0.4/4, 4/16 + 0.4/4, 8/16 + 0.4 x 2/4; CER 12.3, 17.1, 11.4.

    In 100 s four GPUs (60 s to spare); in 35 s only 2 x 4 ends in time; in 10 s none does, so the best of all.
    """
    found = evaluated(*(training(f"{s}", expected_completion_ms=1000 * s) for s in (100, 35, 10)))
    assert found == [("4", 60), ("2x4", 5), ("4", -30)]


def test_expected_completion_by_class() -> None:
    """Arrival 50 s, now 60 s, 120 s on one GPU: urgent 50, prior 170, normal 290 s; four GPUs take 40 s."""
    jobs = [training(name, priority=p, arrival_ms=50_000) for name, p in (("urgent", 2), ("prior", 1), ("normal", 0))]
    assert evaluated(*jobs, now_ms=60_000) == [("4", -50), ("4", 70), ("4", 190)]


def test_a_shape_that_fits_nowhere_is_not_settled_on() -> None:
    """Eight GPUs on one node there are not; a job with nothing else has no shape."""
    big = option("8", gpus=8, rate_milli=90_000, latency_ms=1_000)
    jobs = [job("both", options=(big, SHAPES[1]), expected_completion_ms=50_000), job("none", options=(big,))]
    assert [name for name, _ in evaluated(*jobs)] == ["4", "none"]


def test_the_shortest_allowance_first_and_in_no_other_shape() -> None:
    """One node of four: the job with 60 s to spare goes before that with 160; the latter waits, though one GPU fits."""
    late = training("late", expected_completion_ms=200_000)
    soon = training("soon", expected_completion_ms=100_000, arrival_ms=5)
    small = job("small", gpus=1, expected_completion_ms=500_000)
    round_ = instance(1, [late, small, soon])
    plan = solve(round_, method="swaf", isolation="thread")
    assert [(one.job, one.option) for one in plan.placements] == [("soon", "4")]
    assert {one.reason for one in plan.unplaced} <= {"policy", "conflict", "outvoted"}
    assert violations(round_, plan) == []


@pytest.mark.parametrize("first", range(0, 100, 25))
def test_lawful_and_repeatable_with_every_feature(first: int) -> None:
    """On a hundred random rounds."""
    for seed in range(first, first + 25):
        round_ = random_round(np.random.default_rng([8, seed]))
        problem = compile_problem(round_)
        order = order_jobs(problem, "swaf")
        allocation = swaf(problem, order).allocation
        assert violations(round_, plan_of(problem, allocation)) == [], seed
        assert allocation == swaf(problem, order).allocation
