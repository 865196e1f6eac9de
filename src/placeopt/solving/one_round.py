"""One round: compiled, solved by the stages of a method under one deadline, and finished as a checked plan."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from placeopt.environment import usable_cores
from placeopt.errors import BadInput
from placeopt.formats.gc_pause import gc_paused
from placeopt.heuristics.lookahead import LookaheadDecision
from placeopt.model import Plan
from placeopt.problem import Problem
from placeopt.solvers.inprocess import InProcess
from placeopt.solvers.pool import Worker
from placeopt.solvers.registry import check_extra
from placeopt.solving.budget import Budget, solver_of
from placeopt.solving.context import SolveContext
from placeopt.solving.finish import finish
from placeopt.solving.handover import Handover
from placeopt.solving.methods import Method, method_of
from placeopt.solving.params import SolveParams
from placeopt.solving.pipeline import run_stages
from placeopt.solving.progress import Progress
from placeopt.solving.runners import SolverRunners
from placeopt.solving.stages.reserve_time import first_reserve_s


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during a round: a ``KeyboardInterrupt`` that carries the best checked plan as ``plan``."""

    def __init__(self, plan: Plan) -> None:
        super().__init__("interrupted; the best plan so far is in 'plan'")
        self.plan = plan


@dataclass(frozen=True)
class RoundInput:
    """
    What a call gives to a round beside its `SolveParams`.

    Attributes
    ----------
    started
        When the call began, on ``time.monotonic``, reading included.
    read_s
        Seconds that reading the instance took, for the plan's record.
    previous
        A plan of an earlier round, as a hint.
    cancel, on_progress
        As in ``placeopt.solve``.
    """

    started: float
    read_s: float | None = None
    previous: Plan | None = None
    cancel: threading.Event | None = None
    on_progress: Callable[[Progress], None] | None = None

    def budget(self, params: SolveParams, reserve_s: float = 0.0) -> Budget:
        """Return the budget of the round; a plan comes first, so half of the time left is reserved at most."""
        ends, cores = self.started + params.time_limit_s, usable_cores()
        return Budget(
            params,
            started=self.started,
            deadline=ends - min(reserve_s, max(ends - time.monotonic(), 0.0) / 2),
            threads=1 if params.deterministic else min(params.threads or cores, cores),
            cancelled=None if self.cancel is None else self.cancel.is_set,
        )


def solve_round(
    runners: Sequence[Worker | InProcess],
    compiled: Callable[[], Problem | Plan],
    params: SolveParams,
    given: RoundInput,
    *,
    prove: bool = True,
    explain: bool = True,
    decision: LookaheadDecision | None = None,
) -> Plan:
    """
    Solve a round.

    Parameters
    ----------
    runners
        Two, of solvers.
    compiled
        Compiles the round, whose running jobs are valid; a plan in place of a problem is returned as it is.
    params, given
        How to solve, and what the call gives beside that.
    prove
        Whether methods of greedy alone bound the value.
    explain
        Whether the plan says why each job waits.
    decision
        What look-ahead has decided on this very problem.

    Raises
    ------
    BadInput
        If the method or a solver option is unknown, or running jobs contradict each other.
    Interrupted
        At Ctrl-C, with the best plan in it.
    InternalFault
        If referee or audit refuse the plan.
    """
    method = method_of(params.method)
    if not prove and method.is_greedy:
        method = method.without_bound()
    _check_solver_options(method, params)
    if method.needs_solver:
        runners[0].start()
    compiling = time.monotonic()
    with gc_paused():
        problem = compiled()
    if isinstance(problem, Plan):
        return problem
    compile_s = time.monotonic() - compiling
    budget = given.budget(params, first_reserve_s(problem.num_jobs, compile_s))
    solving = time.monotonic()
    with gc_paused():
        context = SolveContext(
            problem,
            budget,
            greedy=method.greedy,
            handover=Handover(previous_plan=given.previous, decision=decision),
            on_progress=given.on_progress,
        )
    context.solvers = SolverRunners(context, runners)
    try:
        run_stages(context, method.stages)
    except KeyboardInterrupt:
        budget.note_limit("user")
    solve_s = time.monotonic() - solving - budget.check_s
    with gc_paused():
        plan = finish(context, given.read_s, compile_s, solve_s, explain=explain)
    if budget.limit == "user" and budget.cancelled is None:  # then only Ctrl-C can have done it, in a solve maybe
        raise Interrupted(plan)
    return plan


def _check_solver_options(method: Method, params: SolveParams) -> None:
    if not params.solver_options:
        return
    solvers = [solver_of(stage.solver, params, threads=1) for stage in method.exact]
    if not solvers:
        raise BadInput(f"solver_options: method {params.method!r} runs no exact solver; use another method")
    for solver in dict.fromkeys(solvers):
        check_extra(solver, tuple(params.solver_options.items()))
