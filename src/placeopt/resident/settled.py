"""Rounds that look-ahead settles: a plan for those who start alone, without the stages of a whole round."""

from __future__ import annotations

from placeopt.heuristics.lookahead import Ahead
from placeopt.model import Plan, Policy
from placeopt.model.base import trusted
from placeopt.model.plan import InstanceRef, Level, PolicyRef, Stage
from placeopt.problem import Problem
from placeopt.resident.book import Book
from placeopt.stages.draft import Recorder
from placeopt.stages.lookahead import decides_all, told


def settled_plan(book: Book, policy: Policy, problem: Problem, ahead: Ahead, versions: dict[str, str]) -> Plan | None:
    """
    Return the checked plan for those who start now, where look-ahead leaves nothing else to decide.

    None where stages may find more, or where the ledger, which judges it as it does any plan for some jobs, refuses it.
    ``problem`` is that of the book's snapshot.
    """
    if not decides_all(problem, ahead):
        return None
    starts = sorted(ahead.starts)
    recorder = Recorder(problem) if starts else None
    options = [ahead.starts[job].option for job in starts]
    worth = int(problem.options.value[options].sum())
    placements = () if recorder is None else tuple(recorder.record(job, ahead.starts[job]) for job in starts)
    plan = Plan.model_construct(
        format_version=1,
        instance=trusted(InstanceRef, {"name": book.name, "digest": None, "revision": book.revision}),
        policy=trusted(PolicyRef, {"name": policy.name, "digest": policy.digest, "values": policy}),
        status="feasible",
        limit="none",
        asked=tuple(placement.job for placement in placements),
        levels=(trusted(Level, {"name": "value", "sense": "max", "objective": worth, "bound": None}),),
        gap=None,
        facts={
            "gpu_milli_placed": int(problem.options.total_milli[options].sum()),
            "jobs_placed": len(starts),
            "jobs_waiting": 0,  # of those asked for
        },
        placements=placements,
        stages=(
            Stage(
                name="lookahead",
                outcome="improved" if starts or ahead.waits else "kept",
                detail=told(ahead),
                objective=worth,
                bound=None,
                seconds=None,
            ),
        ),
        versions=versions,
    )
    return None if book.ledger.violations(book, plan) else plan
