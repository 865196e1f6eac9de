"""``explain``: the one entry."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Literal

from placeopt.arguments import checked
from placeopt.deadline import Deadline
from placeopt.edits import truth, unread_in
from placeopt.errors import BadInput
from placeopt.explain.placed import explain_placed
from placeopt.explain.question import Question, case_of, freest
from placeopt.explain.records import Explanation
from placeopt.explain.trees import explain_tree
from placeopt.explain.waiting import explain_waiting
from placeopt.linear import LinearModel
from placeopt.model import Instance, Plan
from placeopt.solvers.pool import InProcess, Worker
from placeopt.solvers.result import Progress, Solution, SolveOptions
from placeopt.solving import Solver
from placeopt.solving.tree_fit import is_related


@checked
def explain(
    instance: Instance,
    plan: Plan,
    job: str,
    *,
    time_limit_s: float = 5.0,
    isolation: Literal["process", "thread"] = "process",
    cancel: threading.Event | None = None,
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
    cancel
        Set it from another thread to end as if the time were over.

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
    deadline = Deadline(time_limit_s, cancel)
    found = _explained(instance, plan, job, deadline, isolation)

    def same() -> bool:
        try:
            completed, plan_of_it = freest(unread, instance, plan)
            other = _explained(completed, plan_of_it, job, deadline, isolation)
        except BadInput:  # the plan breaks a rule of it
            return False
        return _told(found) == _told(other)

    unread = unread_in(instance, waiting=False, moved=())
    of, names = truth(unread, same)
    return found.model_copy(update={"of": of, "unread": names})


def _told(found: Explanation) -> tuple[object, ...]:
    """Return what an explanation says, without the names of equal choices."""
    remedies, best = found.remedies, found.best
    return (
        found.reason,
        {constraint.group for constraint in found.conflict},
        None if found.outvoted_by is None else found.outvoted_by.value,
        None if remedies.preempt is None else remedies.preempt.price,
        (remedies.workers_max, remedies.domains_min, remedies.level),
        None if best is None else (best.gain_value, best.gain_cost),
    )


def _explained(
    instance: Instance, plan: Plan, job: str, deadline: Deadline, isolation: Literal["process", "thread"]
) -> Explanation:
    worker = Worker(("highs",)) if isolation == "process" else InProcess()
    with Solver(isolation=isolation, worker=worker if isinstance(worker, Worker) else None) as solver, worker:
        case = case_of(instance, plan, job)

        def solve(
            solver: str,
            model: LinearModel,
            options: SolveOptions,
            on_progress: Callable[[Progress], None] | None = None,
        ) -> Solution:
            solution = worker.solve(
                solver, model, options, deadline=deadline.at, on_progress=on_progress, cancel=deadline.is_set
            )
            if solution.limit == "user" and not deadline.is_set():  # Ctrl-C stopped it; the worker returned an answer
                raise KeyboardInterrupt
            return solution

        q = Question(instance, plan, case, solver, solve, deadline)
        waits = case.number not in case.placed
        if case.tree is not None or (waits and is_related(case.problem, case.number)):
            return explain_tree(q)
        return explain_waiting(q) if waits else explain_placed(q)
