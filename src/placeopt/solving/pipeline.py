"""A method carried out: which stages run, in which order, and what each hands to the next."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from placeopt.formats.gc_pause import gc_paused
from placeopt.heuristics.lookahead import LookaheadDecision
from placeopt.model import Plan
from placeopt.problem import Problem
from placeopt.solvers.race import RACE, RACERS
from placeopt.solving.context import SolveContext
from placeopt.solving.guard import guarded
from placeopt.solving.methods import Method
from placeopt.solving.runners import SolverRunners
from placeopt.solving.stages.bound import Asked, ask_bound, run_bound
from placeopt.solving.stages.branch_and_price import run_branch_and_price
from placeopt.solving.stages.exact import AGAIN_S, is_built, run_exact
from placeopt.solving.stages.gpu_patterns import run_gpu_patterns, suits
from placeopt.solving.stages.heuristic import run_heuristic
from placeopt.solving.stages.lookahead import run_lookahead
from placeopt.solving.stages.neighbourhood_search import is_far, is_wide, run_search
from placeopt.solving.stages.node_patterns import is_large, run_node_patterns
from placeopt.solving.stages.previous_plan import run_previous
from placeopt.solving.stages.rank_mapping import run_rank_mapping
from placeopt.solving.stages.trivial_proof import run_trivial_proof

RESERVE_S = 0.02
RESERVE_PER_JOB_S = 30e-6
"""Time kept back for a first plan, reasons, the final check and the audit, fixed and per job; measured, generous."""
RESERVE_PER_COMPILE = 3.5
"""
The same as a multiple of what compiling has taken in this round: so it holds where the machine is busy with other work.
"""
RESERVE_PER_WAITING = 0.5
"""
Once a plan was offered, as much is kept back as offering it took, and for every job that waits half of what a placed
one took, up to as much again. The end took 0.5 to 0.7 offers where nearly all are placed, up to 2 where four of five
wait; gangs that wait have a time limit of their own.
"""
ARRANGE_SHARE, SEARCH_SHARE = 0.4, 0.5
"""Parts of the time that is left for arrangements, and then for the search, where exact stages come after them."""


def score_and_order(method: Method, problem: Problem) -> tuple[str, str]:
    """Return the names of greedy's score and of the order of jobs."""
    score = method.score if method.score != "auto" else "share_prices" if suits(problem) else "stranding"
    return score, method.order or problem.policy.order


def run_stages(
    context: SolveContext,
    method: Method,
    crew: SolverRunners,
    previous: Plan | None,
    ahead: LookaheadDecision | None = None,
) -> None:
    """
    Run the stages of ``method`` until the round is proven, close enough, or out of time.

    ``previous`` is a plan of an earlier round, ``ahead`` what look-ahead has decided on this very problem, if any.
    """
    score, order = score_and_order(method, context.problem)
    asked: Asked | None = None

    def run(name: str, stage: Callable[..., object], *args: Any, **options: Any) -> None:
        guarded(context, name, partial(stage, context, *args, **options), None)

    with gc_paused():
        look = partial(run_lookahead, context, score, order, strict=method.strict, ahead=ahead)
        if guarded(context, "lookahead", look, otherwise=False):
            context.read()
            return
        if method.bound and crew.is_apart:
            asked = guarded(context, "bound", partial(ask_bound, context, crew.begin), None)
        run("heuristic", run_heuristic, score, order, strict=method.strict, chooser=method.chooser, shape=method.shape)
        context.read()
    context.keep_back(RESERVE_S + _offers_at_the_end(context) * context.offer_s)
    if previous is not None and not method.strict and not context.stopped():
        run("previous", run_previous, previous, score, order)
    if not context.stopped():
        run("ranks", run_rank_mapping)
    if not context.stopped() and not method.is_greedy:
        run("forced", run_trivial_proof)

    limits = context.budget
    alone = limits.threads == 1 or bool(limits.solver_options)
    exact = exact_solvers(method, deterministic=limits.deterministic, alone=alone)
    if any(solver == RACE for _, solver in exact) and not context.proven and not context.stopped():
        crew.warm_up()  # it loads while the bound is found
    relaxed = None
    if method.bound and (asked is not None or not context.stopped()):
        relaxed = guarded(context, "bound", partial(run_bound, context, crew.solve, asked), None)
        if not method.fillings or not suits(context.problem):
            relaxed = None
        run("fillings", run_gpu_patterns, crew.solve, relaxed, score, order, followed=bool(exact))
    if method.patterns and not context.stopped() and (not exact or is_large(context)):
        run("patterns", run_node_patterns, crew.solve, score, order)
    if method.arrange and not context.stopped():
        run("arrangements", run_branch_and_price, crew.solve, ARRANGE_SHARE if exact else 1.0)
    small = any(is_built(context, form) for form, _ in exact)
    if method.search and not context.stopped() and (not small or is_wide(context)):
        run("search", run_search, crew.solve, SEARCH_SHARE if small else 1.0)
    for formulation, solver in exact:
        if context.proven or context.within_gap or context.stopped():
            break
        before = context.incumbent
        run(formulation, run_exact, crew.solve, formulation, solver)
        if context.incumbent is not before and not context.stopped():
            run("ranks", run_rank_mapping)
    if exact and not context.stopped() and not (method.search and is_far(context)):  # too large for exact stages
        run("fillings", run_gpu_patterns, crew.solve, relaxed, score, order)
    if exact and method.search and not context.stopped():
        if context.budget.left_s > AGAIN_S:
            run("search", run_search, crew.solve)
        elif context.budget.deterministic:
            context.note_limit("time")  # as in `SolverRunners.solve`


def _offers_at_the_end(context: SolveContext) -> float:
    """How many times as long as an offer the end may take."""
    placed = (
        0 if context.incumbent is None else sum(placement is not None for placement in context.incumbent.allocation)
    )
    return 1 + min(1.0, RESERVE_PER_WAITING * (context.problem.num_jobs - placed) / max(placed, 1))


def first_reserve_s(num_jobs: int, compile_s: float) -> float:
    """Return the seconds to keep back from stages before anything was offered."""
    return max(RESERVE_S + RESERVE_PER_JOB_S * num_jobs, RESERVE_PER_COMPILE * compile_s)


def exact_solvers(method: Method, *, deterministic: bool, alone: bool) -> tuple[tuple[str, str], ...]:
    """Return the formulations and solvers of a method; ``alone`` if two solvers cannot race."""
    exact = method.repeatable if deterministic and method.repeatable is not None else method.exact
    return tuple((formulation, RACERS[0] if solver == RACE and alone else solver) for formulation, solver in exact)
