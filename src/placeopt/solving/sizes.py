"""How large a round is, and up to which size an exact model of it is built. Time does not depend on size."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from placeopt.readable import plural

if TYPE_CHECKING:
    from placeopt.solving.budget import Budget
    from placeopt.solving.context import SolveContext

MOST_COLUMNS = 1 << 19
"""Columns of an exact model at most: each takes some 500 bytes here, and 1 KB in every solver process of a race."""
DETERMINISTIC_COLUMNS = 1 << 14
"""The same in deterministic mode: building is work that no clock ends, and is done again in every slice."""

LARGE_PRODUCT = 1 << 20
"""Waiting jobs x GPUs from which greedy takes a while: relaxation and search then begin beside it."""


def most_columns(budget: Budget) -> int:
    """Return how many columns an exact model may have."""
    return DETERMINISTIC_COLUMNS if budget.params.deterministic else MOST_COLUMNS


def may_be_built(context: SolveContext, formulation: str) -> bool:
    """
    Tell whether an exact model of the round may be small enough for memory.

    Counted are its columns of options on nodes, or of jobs on GPUs: there are more of other kinds, so that building may
    still find it too large.
    """
    if formulation == "assignment":
        return product(context) <= most_columns(context.budget)
    problem = context.problem
    (of_waiting,) = np.nonzero(np.isin(problem.options.job_class, problem.job_class[context.greedy.jobs(problem)]))
    nodes = np.bincount(problem.node_class, minlength=problem.options.node_class_ok.shape[1])
    return int((problem.options.node_class_ok[of_waiting] @ nodes).sum()) <= most_columns(context.budget)


def product(context: SolveContext) -> int:
    """Return waiting and movable jobs x GPUs: what the size of an exact model grows with."""
    return _waiting(context) * context.problem.num_gpus


def stated(context: SolveContext) -> str:
    """Say how large a round is."""
    return f"{plural(_waiting(context), 'job')} on {plural(context.problem.num_gpus, 'GPU')}"


def _waiting(context: SolveContext) -> int:
    """Return the number of jobs whose place is to be chosen."""
    return sum(placement is None for placement in context.base.placements) + len(context.problem.may_move)
