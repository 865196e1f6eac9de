"""
Plans for some jobs, judged by the ledger: jobs that are named, one after the other, and rounds that one stage decides.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from placeopt.errors import InternalFault
from placeopt.heuristics import SCORES
from placeopt.heuristics.lookahead import LookaheadDecision
from placeopt.live_cluster.cluster_record import ClusterRecord
from placeopt.live_cluster.incremental_placer import IncrementalPlacer
from placeopt.live_cluster.starts_plan import StartsPlan
from placeopt.model import Job, Plan
from placeopt.model.base import trusted
from placeopt.model.plan import Seconds, Unplaced, UnplacedReason
from placeopt.problem import BoolArray, Placement, Problem, State
from placeopt.solving.budget import Budget
from placeopt.solving.draft import Recorder
from placeopt.solving.greedy_rule import GreedyRule
from placeopt.solving.methods import Method
from placeopt.solving.stages.lookahead import decide_ahead, is_decided, lookahead_summary
from placeopt.solving.waiting_reasons import NOT_EXPLAINED, conflict_detail, is_laid_out, need_of, why_forbidden

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
    unplaced = []
    for job_id in (job_id for job_id, held in placement_of.items() if held is None):
        known = explain and nodes is None
        reason, detail = _reason(placer, rule, jobs[job_id], record.jobs[job_id]) if known else NOT_EXPLAINED
        unplaced.append(trusted(Unplaced, {"job": job_id, "reason": reason, "detail": detail}))
    starts = {job_id: (jobs[job_id], held) for job_id, held in placement_of.items() if held is not None}
    bound = sum(placer.worth(number) for number in jobs.values())
    decided = time.monotonic()
    plan, broken = form.decided(
        placer.recorder,
        starts,
        placer.state,
        {
            "name": "decide",
            "outcome": "improved" if starts else "kept",
            "detail": f"{rule.chooser or rule.score}, job by job",
            "seconds": decided - started,
        },
        bound=bound,
        asked=tuple(jobs),
        unplaced=tuple(unplaced),
    )
    if broken:
        raise InternalFault(f"a decision was refused by the referee: {broken[0]}")
    now = time.monotonic()
    times = {"read": None, "compile": None, "solve": decided - started, "check": now - decided, "total": now - started}
    relaxes = () if plan.levels[0].objective == bound else RELAXES
    return trusted(Plan, {**plan.__dict__, "bound_relaxes": relaxes, "seconds": trusted(Seconds, times)})


def _reason(placer: IncrementalPlacer, rule: GreedyRule, number: int, record: Job) -> tuple[UnplacedReason, str]:
    """Say why a job of class ``number``, which was not placed, waits."""
    problem, candidates = placer.problem, placer.candidates(rule.score)
    forbidden = why_forbidden(candidates, number, record)
    if forbidden is not None:
        return forbidden
    if placer.decide(number, rule.score, rule.chooser) is not None:
        return "outvoted", f"fits alone, but other jobs of the plan hold the room: {need_of(problem, number, record)}"
    if any(is_laid_out(problem, option) for option in problem.options_of(number)):
        return "not_reached", "greedy found no distribution that the job allows; a whole round considers all"
    return "conflict", conflict_detail(candidates, number, record, "the running jobs")


def decided_round(
    form: StartsPlan, problem: Problem, method: Method, budget: Budget
) -> tuple[Plan | None, LookaheadDecision | None]:
    """
    Return the checked plan for the jobs that start, where one stage decides all of a round, and look-ahead's decision.

    No plan where stages may find more, or ledger or audit refuse it.
    """
    rule, ahead, outcome = method.greedy.for_problem(problem), None, "improved"
    starts: Mapping[int, Placement] | None
    if problem.policy.postpone.rule == "lookahead":
        ahead = decide_ahead(problem, rule, budget)
        starts = ahead.starts if is_decided(problem, ahead) else None
        name, detail, outcome = "lookahead", lookahead_summary(ahead), "improved" if starts or ahead.waits else "kept"
    else:
        starts = _greedy_starts(problem, method, rule, budget)
        name, detail = "greedy", f"{rule.chooser or rule.score} in order {rule.order}"
    if starts is None:
        return None, ahead
    by_name = {problem.job_ids[job]: (job, held) for job, held in sorted(starts.items())}
    beside = State(problem) if problem.has_geometry else None
    stage = {"name": name, "outcome": outcome, "detail": detail}
    plan, faults = form.decided(Recorder(problem), by_name, beside, stage)
    return None if faults else plan, ahead


def _greedy_starts(problem: Problem, method: Method, rule: GreedyRule, budget: Budget) -> dict[int, Placement] | None:
    """Return where greedy starts jobs, by number; None where stages may find more, or time has run out."""
    has_traffic = any(communication.edges for communication in problem.class_communication)
    if not method.is_greedy or method.greedy.shape != "value" or problem.changeable or has_traffic:
        return None
    with budget.heuristic() as deadline:
        result = rule.place(problem, budget, deadline)
    placed = {job: held for job, held in enumerate(result.allocation) if held is not None}
    starts = {job: held for job, held in placed.items() if job not in problem.running}
    # a round places what is worth nothing only where that costs less
    worth = not starts or any(problem.options.value[held.option] for held in starts.values())
    return starts if worth and not result.not_reached else None
