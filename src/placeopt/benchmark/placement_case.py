"""The case of a placement round: solved, its plan checked again and stored."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from placeopt.benchmark.records import Case, CaseAnswer, Phase, TrajectoryPoint
from placeopt.benchmark.resource_usage import cpu_s
from placeopt.benchmark.shuffle import shuffled
from placeopt.check import violations
from placeopt.formats.documents import read_instance, write_plan
from placeopt.live_cluster.engine import Engine
from placeopt.solving.audit import audit
from placeopt.solving.bounds import Progress


def place_round(
    case: Case, target: Path, point: Callable[[TrajectoryPoint], None], phase: Callable[[Phase], None]
) -> CaseAnswer:
    """Solve a round, check its plan by referee and audit, and store it."""
    began = time.monotonic()
    with Engine() as engine:
        instance = read_instance(case.path)
        if case.permuted:
            instance = shuffled(instance, case.seed)

        def on_progress(news: Progress) -> None:
            point((news.seconds, news.value, news.value_bound, news.cost, news.cost_bound))

        read_s, cpu = time.monotonic() - began, cpu_s()
        phase("solving")
        began = time.monotonic()
        plan = engine.solve(
            instance,
            method=case.solver,
            time_limit_s=case.time_limit_s,
            threads=case.threads,
            seed=case.seed,
            on_progress=on_progress,
            memory_limit_mib=case.memory_limit_mib,
        )
        wall_s = time.monotonic() - began
    spent_s = cpu_s() - cpu  # the solver processes have ended, so they are in it
    phase("judging")
    refused = [str(found) for found in violations(instance, plan)] or audit(instance, plan)
    write_plan(target, plan)
    levels = {level.name: level for level in plan.levels}
    value = levels["value"]
    cost, cost_bound = (levels["cost"].objective, levels["cost"].bound) if "cost" in levels else (None, None)
    point((wall_s, value.objective, value.bound, cost, cost_bound))
    return CaseAnswer(
        status=plan.status,
        limit=plan.limit,
        objective=value.objective,
        bound=value.bound,
        cost=cost,
        cost_bound=cost_bound,
        refused=tuple(refused),
        message="; ".join(f"{s.name}: {s.detail}" for s in plan.stages if s.outcome == "failed"),
        wall_s=wall_s,
        cpu_s=spent_s,
        read_s=read_s,
    )
