"""What a placed job costs, term by term, and the best other place for it while all others stay where they are."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np

from placeopt.errors import OutOfTime, SolverFault, Unsupported
from placeopt.explain.question import ExplainCase, Question
from placeopt.explain.records import Alternative, Explanation, JobPosition, TermShare
from placeopt.formulations import add_counts, decode
from placeopt.linear import NO_UPPER, ModelBuilder
from placeopt.problem import Move, Placement, State
from placeopt.solvers.result import Solution, SolveOptions
from placeopt.solving.sizes import MOST_COLUMNS
from placeopt.terms.costs import costs_of
from placeopt.terms.objective import Weighted, cost, cost_expression, value_expression
from placeopt.terms.rules import fits
from placeopt.terms.rules.minimal_utility import MinimalUtility
from placeopt.terms.variables import Variables

MAX_BUNDLES = 4_000_000
"""Option rows x nodes up to which a model is built to be counted."""


def explain_placed(q: Question) -> Explanation:
    """Explain what the job costs where it is, and which place is best while all others stay."""
    plan, case = q.plan, q.case
    others, now = case.beside_plan(), case.placed[case.number]
    weighted = tuple(  # as in the whole round: by what the plan states
        Weighted(cost, plan.costs[cost.name].weight, plan.costs[cost.name].worst)
        for cost in costs_of(plan.policy.values)
        if cost.name in plan.costs
    )
    best = alternative(q, others, now, weighted, elsewhere=False)
    elsewhere = alternative(q, others, now, weighted, elsewhere=True)
    runs = " (it ran there before the round)" if case.number in case.running else ""
    gains = best.gain_value > 0 or (best.gain_value == 0 and best.gain_cost > 0)
    if gains:
        verdict = "a better place exists while all other jobs stay"
    elif best.proven:
        verdict = "has its best place while all other jobs stay"
    else:
        verdict = "no better place was found while all other jobs stay; not proven that none exists"
    return Explanation(
        job=case.job.id,
        status="placed",
        detail=f"{verdict}{runs}",
        spot=spot_of(case, others, now, weighted),
        best=best,
        elsewhere=elsewhere,
        proven=best.proven and elsewhere.proven,
        seconds=q.seconds(),
    )


def spot_of(case: ExplainCase, others: State, placement: Placement, weighted: tuple[Weighted, ...]) -> JobPosition:
    """Return what the job is worth at ``placement`` beside ``others``, and what it adds to every term there."""
    problem, move = case.problem, Move(case.number, placement)
    terms = []
    for w in weighted:
        raw = w.cost.delta(others, move)
        terms.append(TermShare(term=w.cost.name, raw=raw, unit=w.cost.unit, cost=w.weight * raw))
    return JobPosition(
        option=problem.options.name[placement.option],
        nodes={problem.node_ids[node]: workers for node, workers in sorted(Counter(placement.nodes).items())},
        value=int(problem.options.value[placement.option]),
        cost=sum(term.cost for term in terms),
        terms=tuple(terms),
    )


def alternative(
    q: Question, others: State, now: Placement, weighted: tuple[Weighted, ...], *, elsewhere: bool
) -> Alternative:
    """
    Solve the round of this one job beside ``others`` exactly: the most value, then the least cost.

    ``now`` is where the job is; ``elsewhere`` requires at least one worker on a node that the job does not use now. If
    the solver does not finish or the model is too large, ``proven`` is false and ``detail`` has the cause.

    A job that ran before may stay there whatever applies to those that start, such as a minimal utility or a
    toleration; in the model it is one that starts, so where it ran is compared apart.
    """
    case = q.case
    problem, here = case.problem, spot_of(case, others, now, weighted)
    ran = None if elsewhere else case.running.get(case.number)
    kept = None if ran is None or ran.nodes != now.nodes or ran.gpus != now.gpus else here
    if len(problem.options_of(case.number)) * problem.num_nodes > MAX_BUNDLES:
        return Alternative(spot=kept, proven=False, detail="too many options and nodes for an exact solve")
    builder = ModelBuilder(q.deadline.at)
    try:
        placement, proven = _best(q, builder, others, now, weighted, elsewhere=elsewhere)
    except (OutOfTime, SolverFault, Unsupported) as error:
        return Alternative(spot=kept, proven=False, detail=str(error))
    there = None if placement is None else spot_of(case, others, placement, weighted)
    if kept is not None and (there is None or (kept.value, -kept.cost) > (there.value, -there.cost)):
        there = kept
    if there is None:
        return Alternative(spot=None, proven=proven, detail="it fits nowhere else" if elsewhere else "it fits nowhere")
    return Alternative(spot=there, gain_value=there.value - here.value, gain_cost=here.cost - there.cost, proven=proven)


def _best(
    q: Question,
    builder: ModelBuilder,
    others: State,
    now: Placement,
    weighted: tuple[Weighted, ...],
    *,
    elsewhere: bool,
) -> tuple[Placement | None, bool]:
    case = q.case
    v = add_counts(builder, others, [w.cost for w in weighted])
    mine = np.array([case.number in v.unit_jobs[u] for u in v.start_unit], dtype=bool)
    if not mine.any():
        return None, True
    builder.add_row(v.start[mine], 1, 1, 1)
    if not mine.all():
        builder.add_row(v.start[~mine], 1, 0, 0)
    if elsewhere:
        away = ~np.isin(v.bundle_node, sorted(set(now.nodes))) & mine[v.bundle_start]
        if not away.any():
            return None, True
        builder.add_row(v.bundle[away], 1, 1, NO_UPPER)
    columns, coefficients, constant = value_expression(v)
    builder.set_objective(columns, coefficients, "max", constant)
    best = _solved(q, builder)
    if best is None:
        return None, True
    proven = best.status == "optimal"
    placement = _placement(case, v, best, others)  # before the costs add columns that these values do not have
    if weighted and best.objective is not None:
        builder.add_row(columns, coefficients, best.objective - constant, NO_UPPER)
        columns, coefficients, constant = cost_expression(builder, v, weighted)
        builder.set_objective(columns, coefficients, "min", constant)
        cheapest = _solved(q, builder)
        if cheapest is None:
            raise SolverFault("two solvers find no place at the value that one of them found a place at")
        best, placement = cheapest, _placement(case, v, cheapest, others)
    if weighted:
        after = list(others.allocation())
        after[case.number] = placement
        proven = proven and best.bound == cost(case.problem, tuple(after), weighted)
    return placement, proven


def _solved(q: Question, builder: ModelBuilder) -> Solution | None:
    """Solve; None if two solvers agree that there is nothing."""
    model = builder.build()
    if model.num_variables > MOST_COLUMNS:
        raise Unsupported(f"{model.num_variables} columns are too many for an exact solve")
    for solver in ("highs", "cpsat"):
        q.deadline.check("the best place was looked for")
        left = q.deadline.left_s
        solution = q.solve(solver, model, SolveOptions(time_limit_s=left if math.isfinite(left) else 3600.0))
        if solution.values is not None:
            return solution
        if solution.status != "infeasible":
            raise OutOfTime(f"stopped before there was an answer: {solution.message or solution.limit}")
    return None


def _placement(case: ExplainCase, v: Variables, solution: Solution, others: State) -> Placement:
    placement = decode(v, np.asarray(solution.values))[case.number]
    minimum = MinimalUtility()
    bounded = minimum.form(case.problem) == "bound"  # else its rows let no such placement pass
    if placement is not None and bounded and not minimum.fits(others, case.number, placement):
        raise Unsupported("the model leaves out neighbours, who keep a minimal utility from being reached there")
    if placement is None or not fits(others, case.number, placement):
        raise SolverFault("the solver returned a placement that does not fit the job")
    return placement
