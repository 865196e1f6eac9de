"""What a round loses when it is solved in parts, two at a time, with the same limit for the whole call."""

from __future__ import annotations

import time
from collections.abc import Iterator

from placeopt import solve_in_parts
from rounds import COLUMNS, Solve, about_plan, generated, solve_round
from spec import BenchSpec, Row

PARTS = (2, 4, 8)
LITTLE_S = 0.5
"""Limit of the smallest round, which is solved in two parts only."""


def run(asked: Solve) -> Iterator[Row]:
    """Solve the round as a whole, then in parts."""
    yield from solve_round(asked)
    made, (limit_s,) = asked.make(), asked.limits_s
    for parts in PARTS if limit_s > LITTLE_S else PARTS[:1]:
        instance = made.model_copy()
        began = time.perf_counter()
        plan = solve_in_parts(instance, parts=parts, jobs=2, time_limit_s=limit_s)
        seconds = round(time.perf_counter() - began, 3)
        yield {"method": f"{parts} parts", "limit_s": limit_s, "seconds": seconds, **about_plan(instance, plan)}


SHAPES = (
    ("uniform", 50, 16, 4, 1),
    ("uniform", 10_000, 1000, 4, 1),
    ("varied", 10_000, 1000, 4, 1),
    ("gangs", 1000, 1000, 8, 1),
)
SPEC = BenchSpec(
    name="parts",
    question="How much value does a round lose when it is solved in parts?",
    rounds={
        name: Solve(make, limits_s=(LITTLE_S if name.startswith("uniform-50x") else 10.0,))
        for name, make in (generated(*shape) for shape in SHAPES)
    },
    run=run,
    columns=COLUMNS,
    minutes=3,
)
