"""``explain``: the one entry."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Literal

from placeopt.arguments import checked
from placeopt.errors import BadInput
from placeopt.explain.placed import alternative, spot_of, weights_of
from placeopt.explain.question import Question
from placeopt.explain.records import Explanation
from placeopt.explain.states import ExplainCase, case_of
from placeopt.explain.waiting import explain_waiting
from placeopt.linear import LinearModel
from placeopt.model import Instance, Plan
from placeopt.solvers.inprocess import InProcess
from placeopt.solvers.pool import Worker
from placeopt.solvers.result import Progress, Solution, SolveOptions
from placeopt.solving.solver_call import Solve


@checked
def explain(
    instance: Instance,
    plan: Plan,
    job: str,
    *,
    time_limit_s: float = 5.0,
    isolation: Literal["process", "thread"] = "process",
) -> Explanation:
    """
    Explain why a job waits and what would let it in, or what its place costs and which other is best.

    Parameters
    ----------
    instance, plan
        The round, and a valid plan of it; the plan's policy counts.
    job
        Its id.
    time_limit_s
        Wall-clock seconds. What is not answered by then is left out, says so, and ``proven`` is false.
    isolation
        Where solvers run; see `placeopt.Engine`.

    Returns
    -------
    Explanation
        The reasons, the constraints behind them, and the smallest changes that let the job start; or what the job's
        place costs, term by term. ``proven`` says whether every statement is proven.

    Raises
    ------
    BadInput
        If there is no such job, or the plan is not of this round or breaks its rules.
    """
    if not 0 < time_limit_s < math.inf:
        raise BadInput(f"time_limit_s: {time_limit_s}, expected seconds above 0")
    started = time.monotonic()
    deadline = started + time_limit_s
    with Worker(("highs",)) if isolation == "process" else InProcess() as worker:
        case = case_of(instance, plan, job)

        def solve(
            solver: str,
            model: LinearModel,
            options: SolveOptions,
            on_progress: Callable[[Progress], None] | None = None,
        ) -> Solution:
            solution = worker.solve(solver, model, options, deadline=deadline, on_progress=on_progress)
            if solution.limit == "user":  # only Ctrl-C can have stopped it, which the worker returned as an answer
                raise KeyboardInterrupt
            return solution

        def seconds() -> float:
            return round(time.monotonic() - started, 4)

        if case.number in case.placed:
            return _explain_placed(plan, case, solve, deadline, seconds)
        return explain_waiting(Question(instance, plan, case, solve, deadline), seconds)


def _explain_placed(
    plan: Plan, case: ExplainCase, solve: Solve, deadline: float, seconds: Callable[[], float]
) -> Explanation:
    others, now, weighted = case.beside_plan(), case.placed[case.number], weights_of(plan)
    best = alternative(case, others, now, weighted, solve, deadline, elsewhere=False)
    elsewhere = alternative(case, others, now, weighted, solve, deadline, elsewhere=True)
    runs = " (it ran there before the round)" if case.number in case.running else ""
    gains = best.gain_value > 0 or (best.gain_value == 0 and best.gain_cost > 0)
    if gains:
        verdict = "could stand better while all others stay"
    elif best.proven:
        verdict = "stands as well as it can while all others stay"
    else:
        verdict = "no better place was found while all others stay; that there is none is not proven"
    return Explanation(
        job=case.job.id,
        status="placed",
        detail=f"{verdict}{runs}",
        spot=spot_of(case, others, now, weighted),
        best=best,
        elsewhere=elsewhere,
        proven=best.proven and elsewhere.proven,
        seconds=seconds(),
    )
