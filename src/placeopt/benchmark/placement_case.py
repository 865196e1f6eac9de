"""The case of a placement round: solved, its plan checked again and stored; jobs and nodes shuffled where asked."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING

from placeopt.benchmark.journal import Case, CaseAnswer
from placeopt.check import violations
from placeopt.documents.documents import read_instance, write_document
from placeopt.live_cluster.engine import Engine
from placeopt.model import Instance
from placeopt.solving.audit import audit
from placeopt.solving.bounds import Progress

if TYPE_CHECKING:
    from placeopt.benchmark.child import CaseReport


def place_round(case: Case, target: Path, report: CaseReport) -> CaseAnswer:
    """Solve a round, check its plan by referee and audit, and store it."""
    with Engine() as engine:
        instance = read_instance(case.path)
        if case.permuted:
            instance = shuffled(instance, case.seed)

        def on_progress(news: Progress) -> None:
            report.point((news.seconds, news.value, news.value_bound, news.cost, news.cost_bound))

        report.solving()
        plan = engine.solve(instance, on_progress=on_progress, **case.params.keywords())
        report.solved()
    report.judging()
    refused = [str(violation) for violation in violations(instance, plan)] or audit(instance, plan)
    write_document(target, plan)
    levels = {level.name: level for level in plan.levels}
    value = levels["value"]
    cost, cost_bound = (levels["cost"].objective, levels["cost"].bound) if "cost" in levels else (None, None)
    report.point((report.wall_s or 0.0, value.objective, value.bound, cost, cost_bound))
    return CaseAnswer(
        status=plan.status,
        limit=plan.limit,
        objective=value.objective,
        bound=value.bound,
        cost=cost,
        cost_bound=cost_bound,
        refused=tuple(refused),
        message="; ".join(f"{s.name}: {s.detail}" for s in plan.stages if s.outcome == "failed"),
    )


def shuffled(instance: Instance, seed: int) -> Instance:
    """Return the instance with jobs and nodes in an order drawn from ``seed``; ids stay, and so do plans."""
    draw = random.Random(seed)  # noqa: S311 - repeatable, not secret
    jobs, nodes = list(instance.jobs), list(instance.cluster.nodes)
    draw.shuffle(jobs)
    draw.shuffle(nodes)
    cluster = instance.cluster.model_copy(update={"nodes": tuple(nodes)})
    return instance.model_copy(update={"jobs": tuple(jobs), "cluster": cluster})
