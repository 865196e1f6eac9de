"""Review of a given placement: broken rules, distance from the best plan, and the most useful single moves."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal

from placeopt.arguments import checked
from placeopt.check import violations
from placeopt.deadline import Deadline
from placeopt.explain import explain
from placeopt.feasibility.fit import best_fit
from placeopt.feasibility.free_capacity import free_capacity_of
from placeopt.feasibility.requirement import requirements_of
from placeopt.live_cluster.engine import Engine
from placeopt.model import Instance, Placement, Plan
from placeopt.model.base import FormatVersion, Record
from placeopt.model.plan import Cost, InstanceRef, Level, PolicyRef, Unplaced
from placeopt.problem import Move, State, compile_problem
from placeopt.problem.grants import bounds_of, granted
from placeopt.solving.audit import allocation_of
from placeopt.terms.objective import Weighted, cost_delta, raw_costs, value, weighted_costs
from placeopt.whatif.answers import CostComparison, Review, SingleMove
from placeopt.whatif.round_solving import Limits, solve_round

MOVES_SHARE = 0.5
"""Time for single moves, as a part of the time for the round."""
EXPLAIN_S = 5.0
SHOWN = 100


class Placements(Record):
    """Placements of jobs and nothing else, as another scheduler made them."""

    document: Literal["placements"] = "placements"
    """What the file is."""
    format_version: FormatVersion = 2
    placements: tuple[Placement, ...]


@checked
def plan_of(instance: Instance, placements: Sequence[Placement]) -> Plan:
    """
    Return placements as a plan under the instance's own policy; jobs that are not named wait, running ones stay.

    Shares between request and limit are granted again, whatever the placements state; others are left to the referee.
    `review` computes objective and costs after the check.
    """
    policy = instance.policy
    named = {placement.job for placement in placements}
    stay = tuple(held.placement for held in instance.running if held.job not in named)
    runs = {held.job for held in stay}
    return Plan(
        instance=InstanceRef(name=instance.name, digest=instance.digest, revision=instance.revision),
        policy=PolicyRef(name=policy.name, digest=policy.digest, values=policy),
        status="feasible",
        limit="none",
        levels=(Level(name="value", sense="max", objective=0, bound=None),),
        gap=None,
        placements=tuple(_granted(instance, (*stay, *placements))),
        unplaced=tuple(
            Unplaced(job=job.id, reason="not_reached", detail="not placed")
            for job in instance.jobs
            if job.id not in named and job.id not in runs
        ),
    )


def _granted(instance: Instance, placements: Sequence[Placement]) -> Iterator[Placement]:
    """Yield placements with the shares that are granted, but for those that state a share out of range."""
    jobs, policy = {job.id: job for job in instance.jobs}, instance.policy
    for stated, anew in zip(placements, granted(placements, jobs, policy.share_mode), strict=True):
        low, high = bounds_of(stated, jobs, policy.share_mode)
        valid = all(low <= milli <= high for assignment in stated.assignments for milli in assignment.gpus.values())
        yield anew if valid else stated


@checked
def review(
    instance: Instance,
    plan: Plan,
    *,
    moves: int = 5,
    limits: Limits | None = None,
    cancel: threading.Event | None = None,
) -> Review:
    """
    Check a plan, compare it with the proven best of its round, and find the most useful single moves.

    Parameters
    ----------
    instance, plan
        The round and the placement; objective and costs that the plan states are ignored. `plan_of` makes a plan.
    moves
        Maximum number of moves.
    limits
        Of the round that is solved for comparison; single moves take up to half as long in addition.
    cancel
        Set it from another thread to stop with what is known.

    Returns
    -------
    Review
        ``violations`` alone if it breaks rules. Otherwise its value, that of the best plan found and the proven bound;
        the costs of both plans, term by term; and moves of single jobs while all others stay: a placement for a waiting
        job, or a better one for a job that this round has placed.
    """
    limits = limits or Limits()
    clock = Deadline(limits.time_limit_s, cancel)
    broken = violations(instance, plan)
    if broken:
        messages = tuple(f"{violation.rule}: {violation.message}" for violation in broken[:SHOWN])
        return Review(valid=False, violations=messages, count=len(broken), seconds=clock.spent_s)
    policy = plan.policy.values
    problem = compile_problem(instance, policy)
    allocation = allocation_of(plan, problem)
    weighted = weighted_costs(problem)
    with Engine(policy) as engine:
        best = solve_round(engine, instance, limits, clock, previous=plan)
    levels = {level.name: level for level in best.levels}
    mine = value(problem, allocation)
    terms = tuple(
        CostComparison(
            name=w.cost.name,
            unit=w.cost.unit,
            weight=w.weight,
            raw=raw,
            best_raw=best.costs[w.cost.name].raw,
        )
        for w, raw in zip(weighted, raw_costs(problem, allocation, weighted), strict=True)
    )
    restated = _restated(plan, mine, terms, weighted)
    moves_clock = Deadline(MOVES_SHARE * limits.time_limit_s, cancel)
    helpful, tried, all_tried = _moves(instance, restated, State(problem, allocation), weighted, moves_clock)
    cost = levels.get("cost")
    return Review(
        valid=True,
        value=mine,
        best_value=levels["value"].objective,
        value_bound=levels["value"].bound,
        cost=sum(term.weight * term.raw for term in terms) if weighted else None,
        best_cost=None if cost is None else cost.objective,
        cost_bound=None if cost is None else cost.bound,
        terms=terms,
        moves=helpful[:moves],
        jobs_tried=tried,
        all_tried=all_tried,
        seconds=clock.spent_s,
    )


def _restated(plan: Plan, worth: int, terms: Sequence[CostComparison], weighted: Sequence[Weighted]) -> Plan:
    """Return the plan with its actual objective and costs in place of the stated ones."""
    levels = [Level(name="value", sense="max", objective=worth, bound=None)]
    if weighted:
        total = sum(term.weight * term.raw for term in terms)
        levels.append(Level(name="cost", sense="min", objective=total, bound=None))
    costs = {
        term.name: Cost(raw=term.raw, weight=w.weight, worst=w.worst, unit=w.cost.unit)
        for term, w in zip(terms, weighted, strict=True)
    }
    return plan.model_copy(update={"levels": tuple(levels), "costs": costs})


def _moves(
    instance: Instance,
    plan: Plan,
    state: State,
    weighted: tuple[Weighted, ...],
    clock: Deadline,
) -> tuple[tuple[SingleMove, ...], int, bool]:
    """Return moves of single jobs, best first, the number of jobs tried, and whether all that may move were tried."""
    problem = state.problem
    number = {name: j for j, name in enumerate(problem.job_ids)}
    records = {job.id: job for job in instance.jobs}
    moves: list[SingleMove] = []
    tried, complete = 0, True
    for waiting in plan.unplaced:
        if clock.is_set():
            complete = False
            break
        tried += 1
        job = records[waiting.job]
        place = best_fit(free_capacity_of(state, job), requirements_of(problem, job), clock)
        if place is not None and place.worth > 0:
            nodes = {problem.node_ids[node]: workers for node, workers in sorted(place.nodes.items())}
            moves.append(SingleMove(job=job.id, kind="place", nodes=nodes, gain_value=place.worth, gain_cost=None))
    runs = {held.job for held in instance.running}
    placed = [placement.job for placement in plan.placements if placement.job not in runs]
    shares = {name: -cost_delta(state, Move(number[name], None), weighted) for name in placed} if weighted else {}
    for name in sorted(shares, key=lambda name: (-shares[name], name)):
        if shares[name] <= 0:
            break  # a job that costs nothing cannot cost less
        if clock.is_set():
            complete = False
            break
        tried += 1
        left = max(0.05, min(EXPLAIN_S, clock.left_s))
        best = explain(instance, plan, name, time_limit_s=left, cancel=clock).best
        if best is not None and best.spot is not None and (best.gain_value > 0 or best.gain_cost > 0):
            gains = {"gain_value": best.gain_value, "gain_cost": best.gain_cost}
            moves.append(SingleMove(job=name, kind="move", nodes=dict(Counter(best.spot.nodes)), **gains))
    moves.sort(key=lambda move: (-move.gain_value, -(move.gain_cost or 0), move.job))
    return tuple(moves), tried, complete
