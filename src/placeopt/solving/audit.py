"""
The audit: judge and rescore a plan with the terms.

Objective, costs and gap arithmetic are compared with what the plan states. Minimal utility is judged here and not by
the referee: how well a job runs at a place is a score, which has one definition.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from placeopt.arguments import checked
from placeopt.check import violations
from placeopt.errors import PlaceoptError
from placeopt.model import Instance, Plan
from placeopt.problem import Allocation, Placement, Problem, State, compile_problem
from placeopt.problem.changes import restarted
from placeopt.problem.running import placed_in
from placeopt.terms.objective import Weighted, raw_costs, value, weighted_costs
from placeopt.terms.rules.minimal_utility import applies, falls_short


class Scored(NamedTuple):
    """An allocation whose scores are known: its value, and the raw score of every cost that counts."""

    allocation: Allocation
    value: int
    weighted: tuple[Weighted, ...]
    raw: tuple[int, ...]


@checked
def audit(instance: Instance, plan: Plan, problem: Problem | None = None, *, scored: Scored | None = None) -> list[str]:
    """
    Return what a plan states wrongly of itself: objective, costs, gap; and the jobs below their minimal utility.

    It judges by the plan's own policy. Costs are defined for allowed placements only: of a plan that breaks a rule only
    this is returned.

    Parameters
    ----------
    instance
        The round.
    plan
        A plan of it.
    problem
        The compiled instance, of a plan that ``check.violations`` has read already.
    scored
        An allocation of ``problem`` that was scored before: its scores count where the plan, as it is written, says
        the same, and the plan is scored again where it does not.

    Returns
    -------
    list of str
        One statement each; empty if the plan is right.
    """
    if problem is None and (broken := violations(instance, plan)):
        return [f"cannot be rescored: the plan breaks rules, first of all {broken[0]}"]
    try:
        problem = problem or compile_problem(instance, plan.policy.values)
        allocation = allocation_of(plan, problem)
    except PlaceoptError as error:
        return [f"cannot be rescored: {error}"]
    faults = below_minimum(problem, allocation)
    weighted: tuple[Weighted, ...] = ()
    raws: tuple[int, ...] = ()
    if scored is not None and allocation == scored.allocation:
        weighted, raws, actual = scored.weighted, scored.raw, {"value": scored.value}
    elif plan.asked is None:
        weighted = weighted_costs(problem)
        raws = raw_costs(problem, allocation, weighted)
        actual = {"value": value(problem, allocation)}
    else:  # a plan for some jobs: what these are worth; no costs
        options = {problem.job_ids[job]: placement.option for job, placement in enumerate(allocation) if placement}
        actual = {"value": sum(int(problem.options.value[options[held.job]]) for held in plan.placements)}
    if weighted:
        actual["cost"] = sum(w.weight * raw for w, raw in zip(weighted, raws, strict=True))
    stated = {level.name: level for level in plan.levels}
    if list(stated) != list(actual) or len(stated) != len(plan.levels):
        return [*faults, f"levels: {[level.name for level in plan.levels]}, expected {list(actual)}"]
    for name, level in stated.items():
        if level.objective != actual[name]:
            faults.append(f"levels: {name} is stated as {level.objective}, but the plan's is {actual[name]}")
        sense = "max" if name == "value" else "min"
        if level.sense != sense:
            faults.append(f"levels: {name} has sense {level.sense!r}, expected {sense!r}")
        if level.bound is not None and (level.bound < actual[name] if sense == "max" else level.bound > actual[name]):
            faults.append(f"levels: the bound {level.bound} of {name} is on the wrong side of {actual[name]}")
    for w, raw in zip(weighted, raws, strict=True):
        record = plan.costs.get(w.cost.name)
        if record is None or (record.raw, record.weight, record.worst) != (raw, w.weight, w.worst):
            faults.append(f"costs: {w.cost.name} should be raw {raw}, weight {w.weight}, worst {w.worst}")
    extra = set(plan.costs) - {w.cost.name for w in weighted}
    if extra:
        faults.append(f"costs: {sorted(extra)} do not count under the policy")
    return faults + _arithmetic(plan)


def below_minimum(problem: Problem, allocation: Allocation) -> list[str]:
    """Return a statement for each job that starts, or is moved, below its minimal utility; see `MinimalUtility`."""
    if not applies(problem):
        return []
    form, faults, state = problem.policy.postpone.utility, list[str](), State(problem, allocation)
    for job, record in enumerate(problem.instance.jobs):
        least, lack = record.utility_min_thousandths or 0, falls_short(state, job)
        if not lack:
            continue
        which = f"job {problem.job_ids[job]!r}: its utility ({form}) is {least - lack}"
        faults.append(f"minimal utility: {which}, below its minimum of {least} thousandths")
    return faults


def _arithmetic(plan: Plan) -> list[str]:
    """Return contradictions of status and gap with objectives and bounds; a plan for some jobs leaves costs open."""
    faults = []
    open_levels = [level for level in plan.levels if level.bound != level.objective]
    unpriced = plan.asked is not None and plan.policy.values.weights.any_cost
    if (plan.status == "optimal") != (not open_levels and not unpriced):
        faults.append(f"status: {plan.status!r} with {len(open_levels) + unpriced} levels not proven")
    gap: float | None = None if unpriced else 0.0
    if open_levels:
        first = open_levels[0]
        gap = None if first.bound is None else abs(first.bound - first.objective) / max(1, abs(first.objective))
    if gap != plan.gap and (gap is None or plan.gap is None or not math.isclose(gap, plan.gap)):
        faults.append(f"gap: {plan.gap}, expected {gap}")
    return faults


def allocation_of(plan: Plan, problem: Problem) -> Allocation:
    """
    Return the plan's placements in indices.

    Raises ``BadInput`` if a placement is of no job, or no option of its job, or on a node or GPU that is not there.
    """
    jobs = {job_id: j for j, job_id in enumerate(problem.job_ids)}
    moved = {move.job for move in plan.moved if jobs.get(move.job) in problem.running}
    records = problem.running_records
    ran = {record.job: (record.option, record.assignments, job) for job, record in records.items()}
    out: list[Placement | None] = [None] * problem.num_jobs
    for number, held in problem.running.items() if plan.asked is not None else ():
        out[number] = held
    others = []
    for placement in plan.placements:
        option, assignments, number = ran.get(placement.job, ("", (), -1))
        if number >= 0 and placement.option == option and placement.assignments is assignments:
            out[number] = problem.running[number]  # the very records: nothing has to be read
        else:
            others.append(placement)
    for job, held in placed_in(problem, others, records).items():
        kept = problem.running.get(job)
        same = kept is not None and (held == kept or job in problem.tree_of)
        out[job] = kept if same else restarted(problem, job, held) if problem.job_ids[job] in moved else held
    return tuple(out)
