"""The plan for some jobs: decided one after the other, judged by the ledger, with their objective and bound."""

from __future__ import annotations

import time

from placeopt.errors import InternalFault
from placeopt.heuristics import SCORES
from placeopt.live_cluster.cluster_record import ClusterRecord
from placeopt.live_cluster.incremental_placer import IncrementalPlacer
from placeopt.live_cluster.starts_plan import StartsPlan
from placeopt.model import Job, Plan, Policy
from placeopt.model.base import trusted
from placeopt.model.plan import Seconds, Stage, Unplaced, UnplacedReason
from placeopt.problem import BoolArray, Placement
from placeopt.solving.draft import placed_facts, proof, value_level
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


def plan_for(
    record: ClusterRecord,
    form: StartsPlan,
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
    placed = {job_id: held for job_id, held in placement_of.items() if held is not None}
    unplaced = []
    for job_id in (job_id for job_id in jobs if job_id not in placed):
        known = explain and nodes is None
        reason, detail = _reason(placer, rule, jobs[job_id], record.jobs[job_id]) if known else NOT_EXPLAINED
        unplaced.append(trusted(Unplaced, {"job": job_id, "reason": reason, "detail": detail}))
    value = sum(int(placer.problem.options.value[held.option]) for held in placed.values())
    bound = sum(placer.worth(number) for number in jobs.values())
    made = [placer.recorder.record(job_id, held) for job_id, held in placed.items()]
    decided = time.monotonic()
    plan = form.write(
        placer.recorder.with_starts(made, list(placed.values()), placer.state),
        **proof([value_level(value, bound)], unpriced=policy.weights.any_cost),
        asked=tuple(jobs),
        bound_relaxes=() if value == bound else RELAXES,
        facts=placed_facts(placer.problem, list(placed.values()), len(unplaced)),
        unplaced=tuple(unplaced),
    )
    broken = form.faults(plan, placer.problem, {jobs[job_id]: held for job_id, held in placed.items()})
    if broken:
        raise InternalFault(f"a decision was refused by the referee: {broken[0]}")
    now = time.monotonic()
    stage = {
        "name": "decide",
        "outcome": "improved" if placed else "kept",
        "detail": f"{rule.chooser or rule.score}, job by job",
        "objective": value,
        "bound": bound,
        "seconds": decided - started,
    }
    times = {"read": None, "compile": None, "solve": decided - started, "check": now - decided, "total": now - started}
    told = {"stages": (trusted(Stage, stage),), "seconds": trusted(Seconds, times)}
    return trusted(Plan, {**plan.__dict__, **told})


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
