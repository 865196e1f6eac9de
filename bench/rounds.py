"""Rounds that several specs solve: stored ones, generated ones, and what solving one gives as a row."""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from made_rounds import generate
from placeopt import Engine, Instance, Plan, read_instance, violations
from spec import FAILED, Row

ROOT = Path(__file__).resolve().parents[1]
INSTANCES = ROOT / "instances"
COLUMNS = (
    *("round", "method", "limit_s", "seconds", "cpu_s", "status", "jobs", "gpus", "placed"),
    *("value", "value_bound", "cost", "cost_bound", "load"),
)
GREEDY = "stranding"
"""Method of the product's own greedy, which `auto` is compared with."""
FIRST = ("greedy", "drb", "swaf")
"""Heuristics of the first plan, in their order."""


@dataclass(frozen=True)
class Solve:
    """A round, made when it is needed, with the methods and limits in seconds that it is solved by."""

    make: Callable[[], Instance]
    limits_s: tuple[float, ...]
    methods: tuple[str, ...] = ("auto",)
    seed: int = 0


def generated(spec: str, jobs: int, nodes: int, gpus: int, seed: int) -> tuple[str, Callable[[], Instance]]:
    """Return the name of a generated round, and what makes it."""
    return f"{spec}-{jobs}x{nodes}x{gpus}-s{seed}", lambda: generate(spec, jobs=jobs, nodes=nodes, gpus=gpus, seed=seed)


def stored(entry: str) -> tuple[str, Callable[[], Instance]]:
    """Return the name of a stored round, and what reads it."""
    path = INSTANCES / entry
    return path.name.partition(".")[0], lambda: read_instance(path)


def listed(name: str) -> list[str]:
    """Return the entries of a list of stored instances."""
    return (INSTANCES / f"{name}.test").read_text(encoding="utf-8").split()


def solve_round(asked: Solve) -> Iterator[Row]:
    """Solve a round by each method, under each limit, from the instance in memory to the checked plan."""
    made = asked.make()
    for limit_s in asked.limits_s:
        for method in asked.methods:
            instance = made.model_copy()  # nothing of it has been computed before
            cpu, wall = cpu_s(), time.perf_counter()  # in this order: the engine warms up where it is first asked
            plan = warm_engine().solve(instance, method=method, time_limit_s=limit_s, seed=asked.seed)
            spent = {"seconds": round(time.perf_counter() - wall, 3), "cpu_s": round(cpu_s() - cpu, 3)}
            yield {"method": method, "limit_s": limit_s, **spent, **about_plan(instance, plan)}


def about_plan(instance: Instance, plan: Plan) -> Row:
    """Return what a plan reaches and proves; the cost is None where none counts."""
    value, *others = plan.levels
    cost = others[0] if others else None
    row: Row = {
        "status": plan.status,
        "jobs": len(instance.jobs),
        "gpus": gpus_of(instance),
        "placed": len(plan.placements),
        "value": value.objective,
        "value_bound": value.bound,
        "cost": cost and cost.objective,
        "cost_bound": cost and cost.bound,
    }
    wrong = violations(instance, plan)
    return row | ({FAILED: f"{len(wrong)} violations, first: {wrong[0].message}"} if wrong else {})


def objective(plan: Plan) -> tuple[int, ...]:
    """Return what plans are compared by: the value, then the costs, less being better."""
    first, *others = plan.levels
    return (first.objective, *(-level.objective for level in others))


def best_first(plan: Plan) -> str:
    """Return which heuristic made the best first plan: the last of them that improved it."""
    made = [stage.name for stage in plan.stages if stage.outcome == "improved" and stage.name in FIRST]
    return made[-1] if made else "none"


def cut_short(plan: Plan) -> list[str]:
    """Return the heuristics of the first plan that the clock ended before they had tried all jobs."""
    return [stage.name for stage in plan.stages if stage.name in FIRST and "not reached" in stage.detail]


def gpus_of(instance: Instance) -> int:
    """Return the GPUs of a round's cluster."""
    return sum(instance.cluster.gpus_by_node.values())


@functools.cache
def warm_engine() -> Engine:
    """Return the engine of this process, whose solvers have started and solved a round."""
    engine = Engine()
    atexit.register(engine.close)
    for spec in ("varied", "gangs"):  # between them they use every stage
        engine.solve(generate(spec, jobs=40, nodes=8, gpus=4, seed=1), time_limit_s=1)
    return engine


def cpu_s() -> float:
    """Return the CPU seconds so far of this process, of its children that ended, and of the engine's solvers."""
    total = sum(os.times()[:4])
    for pid in warm_engine().solver_pids:
        with contextlib.suppress(OSError):  # a solver that was ended meanwhile counts as a child that ended
            fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
            total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


def gap_percent(objective: int | None, bound: int | None) -> float | None:
    """Return how far an objective is from its bound, in percent of the objective; None without a bound."""
    return None if objective is None or bound is None else 100 * abs(bound - objective) / max(1, abs(objective))
