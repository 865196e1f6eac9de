"""``explain``: the one entry."""

from __future__ import annotations

import math
import threading
from typing import Literal

from placeopt.arguments import checked
from placeopt.deadline import Deadline
from placeopt.edits import true_of, unread_in
from placeopt.errors import BadInput
from placeopt.explain.explanation import Explanation
from placeopt.explain.placed import explain_placed
from placeopt.explain.question import Question, check_plan, freest, job_named, tools
from placeopt.explain.waiting import explain_waiting
from placeopt.model import Instance, Plan


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
    unread = unread_in(instance, waiting=False, moved=())
    return true_of(
        _explained(instance, plan, job, deadline, isolation),
        unread,
        lambda: _explained(*freest(unread, instance, plan), job, deadline, isolation),
        _said,
    )


def _said(found: Explanation) -> tuple[object, ...]:
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
    asked = job_named(instance, job)
    check_plan(instance, plan)
    with tools(isolation, deadline) as by:
        q = Question(instance, plan, asked, by)
        return explain_waiting(q) if q.waits else explain_placed(q)
