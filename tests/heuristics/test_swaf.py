"""SWAF: the shortest allowance first, in the shape that it was evaluated on."""

from placeopt import Engine
from placeopt.build import instance, job, option
from placeopt.check import violations
from placeopt.model import Job

SHAPES = (
    option("1", gpus=1, rate_milli=2_000, latency_ms=120_000, value=10),
    option("4", gpus=4, rate_milli=6_000, latency_ms=40_000),
    option("2x4", workers=2, gpus=4, workers_per_node_max=1, rate_milli=8_000, latency_ms=30_000),
)


def training(name: str, **fields: int) -> Job:
    """A job with the three shapes."""
    return job(name, options=SHAPES, **fields)


def test_the_shortest_allowance_first_and_in_no_other_shape(engine: Engine) -> None:
    """One node of four: the job with 60 s to spare goes before that with 160; the latter waits, though one GPU fits."""
    late = training("late", expected_completion_ms=200_000)
    soon = training("soon", expected_completion_ms=100_000, arrival_ms=5)
    small = job("small", gpus=1, expected_completion_ms=500_000)
    round_ = instance(1, [late, small, soon])
    plan = engine.solve(round_, method="swaf")
    assert [(one.job, one.option) for one in plan.placements] == [("soon", "4")]
    assert {one.reason for one in plan.unplaced} <= {"policy", "conflict", "outvoted"}
    assert violations(round_, plan) == []
