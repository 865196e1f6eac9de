"""Rounds in which one stage decides all: a plan for those who start alone, without the stages of a whole round."""

from __future__ import annotations

from collections.abc import Mapping

from placeopt.live_cluster.cluster_record import ClusterRecord
from placeopt.model import Plan, Policy
from placeopt.model.base import trusted
from placeopt.model.plan import InstanceRef, Level, PolicyRef, Stage
from placeopt.problem import Placement, Problem
from placeopt.solving.draft import Recorder


def fast_path_plan(
    book: ClusterRecord,
    policy: Policy,
    problem: Problem,
    placed: Mapping[int, Placement],
    stage: tuple[str, bool, str],
    versions: dict[str, str],
) -> Plan | None:
    """
    Return the checked plan for the jobs that start now, by number, and nobody else.

    ``problem`` is that of the book's snapshot; ``stage``: the name of the one that decided, whether it improved
    anything, and what it did. None where the ledger, which judges the plan as it does any for some jobs, refuses it.
    """
    starts = sorted(placed)
    recorder = Recorder(problem) if starts else None
    options = [placed[job].option for job in starts]
    worth = int(problem.options.value[options].sum())
    made = () if recorder is None else tuple(recorder.record(job, placed[job]) for job in starts)
    placements = tuple(book.granted(made))
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
                name=stage[0],
                outcome="improved" if stage[1] else "kept",
                detail=stage[2],
                objective=worth,
                bound=None,
                seconds=None,
            ),
        ),
        versions=versions,
    )
    return None if book.ledger.violations(book, plan) else plan
