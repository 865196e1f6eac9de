"""Rounds that no version was tuned on: eight generators, four sizes, three kinds of nodes, five seeds of the commit."""

from __future__ import annotations

import statistics
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import placeopt
from made_rounds import generate
from rounds import FIRST, GREEDY, about_plan, best_first, cut_short, gap_percent, objective, warm_engine
from spec import FAILED, BenchSpec, Row, commit_of

SPECS = ("elastic", "uniform", "varied", "gangs", "fractions", "cubemesh", "contention", "resources")
SIZES = ((40, 8), (80, 16), (200, 32), (400, 64))
"""Jobs and nodes."""
GPUS = (4, 8, 16)
SEEDS = 5
LIMITS_S = (1.0, 10.0)


def seeds() -> list[int]:
    """Return different seeds from the digits of the commit that is measured; ascending ones where there is none."""
    digits = (commit_of(Path(placeopt.__file__).parent) or "0123456789").rstrip("+")
    pairs = (digits[at : at + 2] for begin in (0, 1) for at in range(begin, len(digits) - 1, 2))
    return [int(pair, 16) for pair in dict.fromkeys(pairs)][:SEEDS]


def solve_unseen(spec: str, jobs: int, nodes: int, gpus: int) -> Iterator[Row]:
    """Solve the rounds of one shape, under each limit; a row has the medians and the worst of all seeds."""
    engine = warm_engine()
    rounds = [generate(spec, jobs=jobs, nodes=nodes, gpus=gpus, seed=seed) for seed in seeds()]
    for limit_s in LIMITS_S:
        value, cost, seconds, faults = list[float](), list[float](), list[float](), list[str]()
        count, first = Counter[str](), Counter[str]()
        for made in rounds:
            began = time.perf_counter()
            plan = engine.solve(made.model_copy(), time_limit_s=limit_s)
            seconds.append(time.perf_counter() - began)
            greedy = engine.solve(made.model_copy(), method=GREEDY, time_limit_s=limit_s)
            row = about_plan(made, plan)
            faults += [row[FAILED]] if FAILED in row else []
            faults += [f"{stage.name}: {stage.detail}" for stage in plan.stages if stage.outcome == "failed"]
            value.append(gap_percent(row["value"], row["value_bound"]) or 0.0)
            gap = gap_percent(row["cost"], row["cost_bound"])
            if row["cost"] is not None:  # some generators have no cost that counts
                cost.append(0.0 if row["cost"] == 0 else 100.0 if gap is None else min(gap, 100.0))
            count["proven"] += row["status"] == "optimal"
            count["below_greedy"] += objective(plan) < objective(greedy)
            first[best_first(plan)] += 1
            count["placed_again"] += any(s.name == "drb-again" and s.outcome == "improved" for s in plan.stages)
            count["drb_cut"] += "drb" in cut_short(plan)
        yield {
            "limit_s": limit_s,
            "rounds": len(rounds),
            "seeds": seeds(),
            "seconds_most": round(max(seconds), 3),
            "value_gap_percent": [round(gap, 4) for gap in value],
            "cost_gap_percent": [round(gap, 3) for gap in cost],
            **{key: count[key] for key in ("proven", "below_greedy", "placed_again", "drb_cut")},
            **{f"first_{name}": first[name] for name in FIRST},
            "value_gap_median": round(statistics.median(value), 4),
            "cost_gap_median": round(statistics.median(cost), 3) if cost else None,
            **({FAILED: faults[0]} if faults else {}),
        }


SPEC = BenchSpec(
    name="unseen",
    question="How far are plans of 1 and of 10 s from their bounds on 8 to 64 nodes, on seeds from the commit?",
    rounds={
        f"{spec}-{jobs}x{nodes}x{gpus}": partial(solve_unseen, spec, jobs, nodes, gpus)
        for jobs, nodes in SIZES
        for gpus in GPUS
        for spec in SPECS
        if spec != "cubemesh" or gpus == 8  # its nodes are DGX-1
    },
    run=lambda measure: measure(),
    columns=(
        *("round", "limit_s", "rounds", "seconds_most", "value_gap_median", "cost_gap_median"),
        *("proven", "below_greedy", "first_greedy", "first_drb", "first_swaf", "load"),
    ),
    minutes=65,
)
