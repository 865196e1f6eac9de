"""The end of a round: the best draft with reasons, levels, costs and facts, read once more by referee and audit."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import numpy as np

from placeopt.edits import unread_in
from placeopt.errors import InternalFault
from placeopt.model import Plan
from placeopt.model.plan import Cost, Level, Seconds
from placeopt.problem import IntArray, State, change_of
from placeopt.problem.changes import change_limits
from placeopt.problem.hardware import gpu_parts, node_domains
from placeopt.solving.audit import Scored, audit
from placeopt.solving.context import SolveContext
from placeopt.solving.draft import placed_facts, proof, value_level
from placeopt.solving.waiting_reasons import reasons
from placeopt.terms.objective import most_milli
from placeopt.terms.rules import relaxed


def finish(
    context: SolveContext, read_s: float | None, compile_s: float, solve_s: float, *, explain: bool = True
) -> Plan:
    """
    Return the plan of a round whose stages are over.

    ``read_s``, ``compile_s``, ``solve_s``: Seconds spent before, for the plan's record; none is stated in deterministic
    mode. ``explain``: Whether to look for the reasons of jobs that wait.

    Raises ``InternalFault`` if referee or audit object; always a bug. Raises ``BadInput`` if there is no plan but the
    running jobs as they are, and these break a rule.
    """
    best, bounds, budget = context.incumbent, context.bounds, context.budget
    draft, form = best.read(), context.form
    levels = [value_level(best.value, bounds.whole_value)]
    if context.weighted:
        # where look-ahead narrowed the round it holds among plans that keep to that only
        bound = None if context.narrowed else bounds.cost
        levels.append(Level(name="cost", sense="min", objective=best.cost, bound=bound))
    open_levels = [level for level in levels if level.bound != level.objective]
    checking = time.monotonic()
    final = State(context.problem, best.allocation)
    plan = draft.model_copy(
        update={
            **_scope(context),
            **proof(levels, unpriced=not form.is_whole and context.problem.policy.weights.any_cost),
            "unplaced": reasons(context, final, explain=explain),
            "limit": context.limit if open_levels else "none",
            "bound_relaxes": _relaxes(context, open_levels),
            "costs": {
                w.cost.name: Cost(raw=raw, weight=w.weight, worst=w.worst, unit=w.cost.unit)
                for w, raw in zip(context.weighted, best.raw, strict=True)
            },
            "facts": _facts(context, final),
            "stages": tuple(context.stages),
            "seed": budget.params.seed,
        }
    )
    # scores of a part of the round, to which look-ahead has narrowed it, are not those of the whole
    whole = context.whole is context.problem
    scored = Scored(best.allocation, best.value, context.weighted, best.raw) if whole else None
    faults = [violation.message for violation in form.judge(plan, since=draft).violations]
    faults += audit(context.instance, plan, context.whole, scored=scored)
    if faults:
        raise InternalFault(f"the final plan was refused: {faults[0]}")
    last_s, total_s = budget.seconds_since(checking), budget.seconds_since(budget.started)
    if last_s is None:
        return plan
    seconds = Seconds(read=read_s, compile=compile_s, solve=solve_s, check=last_s + budget.check_s, total=total_s)
    return plan.model_copy(update={"seconds": seconds})


def _scope(context: SolveContext) -> dict[str, Any]:
    """Return which jobs the plan is for, and what it is true of, as far as the draft does not say so."""
    if not context.form.is_whole:
        return {"asked": context.problem.job_ids}
    unread = unread_in(context.instance).names
    return {"of": "reading" if unread else "cluster", "unread": unread}


def _relaxes(context: SolveContext, open_levels: list[Level]) -> tuple[str, ...]:
    """Say what the bound of the first level that is not proven leaves out."""
    if not open_levels:
        return ()
    ahead: tuple[str, ...] = ()
    if context.ahead is not None:
        waits, places = len(context.ahead.waits), len(context.ahead.scheduled)
        counted = ((waits, "should wait may start now"), (places, "have their place may stand elsewhere"))
        ahead = tuple(f"{n} job{'s' * (n != 1)} that by look-ahead {what}" for n, what in counted if n)
    # of all bounds only those of exact models, which leave nothing out, count relations
    related = ("relations between jobs",) if context.problem.relations.hard else ()
    if open_levels[0].name == "value":
        return (*context.bounds.relaxes, *(related if context.bounds.relaxes else ()), *ahead)
    if context.narrowed:
        return ("everything: what is proven of the cost is about plans that keep to look-ahead", *ahead)
    bounded = [w.cost.name for w in context.weighted if w.cost.form(context.problem) == "bound"]
    lower = (f"{name} enters by a lower bound" for name in bounded)
    beyond = (*context.bounds.cost_relaxes, *related) if context.bounds.cost_relaxes else ()
    return (*lower, *relaxed(context.problem), *beyond)


def _facts(context: SolveContext, final: State) -> dict[str, int]:
    """Return plain counts to compare: GPU share and jobs placed, of a whole round also requested and in the cluster."""
    problem = context.problem
    placed = [p for p in context.incumbent.allocation if p is not None]
    facts = placed_facts(problem, placed, problem.num_jobs - len(placed))
    if not context.form.is_whole:
        return facts
    return {
        **facts,
        "gpu_milli_asked": int(most_milli(problem)[problem.job_class].sum()),
        "gpu_milli_bound": context.bounds.gpu_milli,
        "gpu_milli_capacity": 1000 * problem.num_listed_gpus,
        "jobs_running": len(problem.running),
        **_changed(context),
        **slots_left(final),
    }


def _changed(context: SolveContext) -> dict[str, int]:
    """Count the running jobs that the plan changes, by kind; nothing where none may be changed."""
    problem = context.problem
    if not problem.changeable:
        return {}
    held = context.incumbent.allocation
    count = Counter(change_of(problem, job, held[job]) for job in problem.changeable)
    return {f"jobs_{change}": count[change] for change in change_limits(problem)}


SIZES = (1, 2, 4, 8)


def slots_left(state: State) -> dict[str, int]:
    """
    Count the slots of 1, 2, 4 and 8 whole free GPUs that are left, at every level that the cluster has.

    A domain of f free GPUs has ``f // N`` slots of N; ``slots_node_4`` is their sum over nodes. Drained nodes take no
    new work and count nothing. Levels: socket, switch, node, those of the cluster's domains, and ``cluster``.
    """
    problem = state.problem
    free = (state.gpu_jobs == 0) & problem.node_schedulable[problem.gpu_node]
    levels: dict[str, IntArray] = {
        level: gpu_parts(problem.instance, problem.topology, level) for level in ("switch", "socket")
    }
    levels["node"] = problem.gpu_node
    for level in dict.fromkeys(domain.level for domain in problem.instance.cluster.domains):
        levels[level] = node_domains(problem.instance, level)[problem.gpu_node]
    levels["cluster"] = np.zeros(problem.num_gpus, dtype=np.int64)
    out: dict[str, int] = {}
    for level, domain in levels.items():
        if not (domain >= 0).any():
            continue
        count = np.bincount(domain[free & (domain >= 0)])
        out.update({f"slots_{level}_{size}": int((count // size).sum()) for size in SIZES})
    return out
