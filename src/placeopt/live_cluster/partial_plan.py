"""The plan for some jobs: decided one after the other, judged by the ledger, with their objective and bound."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from placeopt.environment import versions
from placeopt.errors import InternalFault
from placeopt.heuristics import SCORES
from placeopt.live_cluster.cluster_record import ClusterRecord
from placeopt.live_cluster.incremental_placer import IncrementalPlacer
from placeopt.model import Job, Plan, Policy
from placeopt.model import Placement as PlacementRecord
from placeopt.model.base import trusted
from placeopt.model.plan import InstanceRef, Level, PolicyRef, Seconds, Stage, Unplaced, UnplacedReason
from placeopt.problem import BoolArray, Placement, Problem
from placeopt.problem.gpu_slots import with_starts
from placeopt.solving.audit import below_minimum
from placeopt.solving.greedy_rule import GreedyRule
from placeopt.solving.methods import Method
from placeopt.solving.waiting_reasons import (
    NOT_EXPLAINED,
    conflict_detail,
    is_laid_out,
    need_of,
    queue_is_full,
    utility_is_low,
)
from placeopt.terms.rules.minimal_utility import applies

NO_SECONDS = Seconds()
RELAXES = ("everything but that each job fits alone",)


def places_rounds(method: Method) -> bool:
    """Tell whether a method decides whole rounds only."""
    rule = method.greedy
    local = rule.score in SCORES and SCORES[rule.score].local
    return bool(method.exact) or rule.strict or rule.shape != "value" or not local


def decide_all(
    placer: IncrementalPlacer, jobs: dict[str, int], rule: GreedyRule, nodes: BoolArray | None = None
) -> dict[str, Placement | None]:
    """Decide on jobs (id -> class), each beside running jobs and those decided before; the placer is left as it was."""
    # A class that failed is not tried again: room only shrinks.
    placement_of: dict[str, Placement | None] = {}
    hopeless: set[int] = set()
    taken: list[tuple[int, Placement]] = []
    for job_id, number in jobs.items():
        placement = None if number in hopeless else placer.decide(number, rule.score, rule.chooser, nodes)
        placement_of[job_id] = placement
        if placement is None:
            hopeless.add(number)
        elif len(placement_of) < len(jobs):
            placer.take(number, placement)
            taken.append((number, placement))
    for number, placement in taken:
        placer.take(number, placement, -1)
    return placement_of


def plan_fields(record: ClusterRecord, policy: Policy, value: int, bound: int | None, **stated: Any) -> dict[str, Any]:
    """Every field of a ``Plan`` for some jobs, in order: ``stated``, else as of a plan that places none of them."""
    return {
        "document": "plan",
        "format_version": 2,
        "instance": trusted(InstanceRef, {"name": record.name, "digest": None, "revision": record.revision}),
        "policy": trusted(PolicyRef, {"name": policy.name, "digest": policy.digest, "values": policy}),
        "status": "feasible",
        "of": "reading" if record.unread else "cluster",
        "unread": record.unread,
        "limit": "none",
        "asked": (),
        "levels": (trusted(Level, {"name": "value", "sense": "max", "objective": value, "bound": bound}),),
        "gap": None,
        "bound_relaxes": (),
        "costs": {},
        "facts": {},
        **dict.fromkeys(("placements", "unplaced", "moved", "shrunk", "preempted", "standing", "stages"), ()),
        "seconds": NO_SECONDS,
        "seed": 0,
        "versions": versions(),
        **stated,
    }


def faults_of(record: ClusterRecord, problem: Problem, plan: Plan, starts: Mapping[int, Placement]) -> list[str]:
    """Return what ledger and audit find wrong with a plan for jobs that start, whose placements are ``starts``."""
    faults = [str(violation) for violation in record.ledger.violations(record, plan)]
    if applies(problem):
        after = (starts.get(job, problem.running.get(job)) for job in range(problem.num_jobs))
        faults += below_minimum(problem, tuple(after))
    return faults


def plan_for(
    record: ClusterRecord,
    placer: IncrementalPlacer,
    policy: Policy,
    jobs: dict[str, int],
    rule: GreedyRule,
    *,
    explain: bool = True,
    nodes: BoolArray | None = None,
) -> Plan:
    """
    Return the checked plan for waiting jobs (id -> class) by greedy alone; ``explain`` as in ``Engine.place``.

    ``nodes``: Shape (N,), the only nodes in question; None: all.

    Raises ``InternalFault`` if the referee refuses what was decided.
    """
    started = time.monotonic()
    placement_of = decide_all(placer, jobs, rule, nodes)
    options = placer.problem.options
    placements, unplaced = [], []
    value = milli = bound = 0
    for job_id, placement in placement_of.items():
        bound += placer.worth(jobs[job_id])
        if placement is None:
            known = explain and nodes is None
            reason, detail = _reason(placer, rule, jobs[job_id], record.jobs[job_id]) if known else NOT_EXPLAINED
            unplaced.append(trusted(Unplaced, {"job": job_id, "reason": reason, "detail": detail}))
            continue
        value += int(options.value[placement.option])
        milli += int(options.total_milli[placement.option])
        placements.append(
            trusted(
                PlacementRecord,
                {
                    "job": job_id,
                    "option": options.name[placement.option],
                    "assignments": placer.recorder.assignments(placement),
                    "reached": {},
                },
            )
        )
    if placer.problem.has_geometry:
        held = [placement for placement in placement_of.values() if placement is not None]
        placements = with_starts(placer.problem, placements, held, placer.state.gpu_slots)
    placements = list(record.granted(placements))
    decided = time.monotonic()
    closed = value == bound
    unpriced = policy.weights.any_cost
    fields = plan_fields(
        record,
        policy,
        value,
        bound,
        status="optimal" if closed and not unpriced else "feasible",
        asked=tuple(jobs),
        gap=(None if unpriced else 0.0) if closed else abs(bound - value) / max(1, abs(value)),
        bound_relaxes=() if closed else RELAXES,
        facts={"gpu_milli_placed": milli, "jobs_placed": len(placements), "jobs_waiting": len(unplaced)},
        placements=tuple(placements),
        unplaced=tuple(unplaced),
    )
    starts = {jobs[job_id]: placement for job_id, placement in placement_of.items() if placement is not None}
    broken = faults_of(record, placer.problem, trusted(Plan, fields), starts)
    if broken:
        raise InternalFault(f"a decision was refused by the referee: {broken[0]}")
    now = time.monotonic()
    stage = {
        "name": "decide",
        "outcome": "improved" if placements else "kept",
        "detail": f"{rule.chooser or rule.score}, job by job",
        "objective": value,
        "bound": bound,
        "seconds": decided - started,
    }
    times = {"read": None, "compile": None, "solve": decided - started, "check": now - decided, "total": now - started}
    return trusted(Plan, {**fields, "stages": (trusted(Stage, stage),), "seconds": trusted(Seconds, times)})


def _reason(placer: IncrementalPlacer, rule: GreedyRule, number: int, record: Job) -> tuple[UnplacedReason, str]:
    """Say why a job of class ``number``, which was not placed, waits."""
    problem, candidates = placer.problem, placer.candidates(rule.score)
    too_low = utility_is_low(candidates, number)
    if too_low is not None:
        return "postponed", too_low
    if not len(problem.options_of(number)):
        return "policy", "every option's utility is below the job's minimum, utility_min_thousandths"
    queue = queue_is_full(placer.state, number, record)
    if queue is not None:
        return "policy", queue
    if placer.decide(number, rule.score, rule.chooser) is not None:
        return "outvoted", f"fits alone, but other jobs of the plan hold the room: {need_of(problem, number, record)}"
    if any(is_laid_out(problem, option) for option in problem.options_of(number)):
        return "not_reached", "greedy found no distribution that the job allows; a whole round considers all"
    return "conflict", conflict_detail(candidates, number, record, "the running jobs")
