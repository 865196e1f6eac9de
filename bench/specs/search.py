"""The local search alone, on one core, from greedy's plan: its pace, and how far it comes in seconds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

from placeopt import Instance
from placeopt.heuristics import greedy, order_jobs
from placeopt.problem import compile_problem
from placeopt.search import LocalSearch, is_compiled, what_is_missing
from placeopt.terms import weighted_costs
from rounds import generated
from spec import BenchSpec, Row

SPECS = ("elastic", "uniform", "varied", "gangs", "fractions", "contention", "resources")
SIZES = ((40, 8), (400, 64), (10_000, 1_250))
"""Jobs and nodes of 8 GPUs."""
SECONDS = 2.0
STEPS = 256
"""Steps between two looks at the clock."""


def paced(make: Callable[[], Instance]) -> Iterator[Row]:
    """Search for some seconds; yield what was done."""
    problem = compile_problem(make())
    weighted = weighted_costs(problem)
    missing = what_is_missing(problem, weighted)
    if missing:
        yield {"steps_per_s": None, "missing": missing}
        return
    start = greedy(problem, order_jobs(problem, problem.policy.order)).allocation
    search = LocalSearch(problem, start, weighted)
    value, cost, began = search.value, search.cost, time.perf_counter()
    while (spent_s := time.perf_counter() - began) < SECONDS:
        search.advance(STEPS)
    yield {
        "steps_per_s": round(search.steps / spent_s),
        "compiled": is_compiled(),
        "value_before": value,
        "value": search.value,
        "cost_before": cost,
        "cost": search.cost,
    }


SPEC = BenchSpec(
    name="search",
    question="How many steps a second does the local search take on one core, and what are two seconds of them worth?",
    rounds=dict(generated(spec, jobs, nodes, 8, 0) for jobs, nodes in SIZES for spec in SPECS),
    run=paced,
    columns=("round", "steps_per_s", "compiled", "value_before", "value", "cost_before", "cost", "load"),
    minutes=2,
)
