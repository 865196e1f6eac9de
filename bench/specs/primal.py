"""How early a plan is good: what the best plan of a round is worth and costs, from the call to the limit."""

from __future__ import annotations

from collections.abc import Iterator

from placeopt import Progress
from rounds import Solve, about_plan, generated, warm_engine
from spec import BenchSpec, Row

SHAPES = (
    *((spec, 80, 16, 8) for spec in ("uniform", "varied", "gangs", "contention", "resources")),
    *((spec, 400, 64, 8) for spec in ("uniform", "varied", "gangs", "contention", "resources")),
    *((spec, 4000, 500, 8) for spec in ("uniform", "varied", "gangs")),
)
LIMIT_S = 10.0


def trace(asked: Solve) -> Iterator[Row]:
    """Solve a round; the trace has a step, in seconds, value and cost, wherever either of these changes."""
    for limit_s in asked.limits_s:
        made, steps = asked.make(), list[list[float | None]]()

        def hear(news: Progress, steps: list[list[float | None]] = steps) -> None:
            if not steps or steps[-1][1:] != [news.value, news.cost]:
                steps.append([round(news.seconds, 3), news.value, news.cost])

        plan = warm_engine().solve(made, time_limit_s=limit_s, on_progress=hear)
        yield {"limit_s": limit_s, **about_plan(made, plan), "trace": steps}


SPEC = BenchSpec(
    name="primal",
    question="How good is the best plan at each moment, before and now?",
    rounds={name: Solve(make, (LIMIT_S,)) for name, make in (generated(*shape, 11) for shape in SHAPES)},
    run=trace,
    columns=("round", "limit_s", "status", "jobs", "value", "value_bound", "cost", "cost_bound", "load"),
    minutes=3,
)
