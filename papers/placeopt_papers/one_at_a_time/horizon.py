"""Quotas for a known amount and mix of arrivals in an unknown order."""

from __future__ import annotations

from numbers import Integral

import numpy as np

from placeopt import BadInput
from placeopt.arguments import expect
from placeopt_papers.one_at_a_time.arrivals import Arrivals
from placeopt_papers.one_at_a_time.hindsight import TIME_LIMIT_S, Isolation, relaxation, solve_relaxation
from placeopt_papers.one_at_a_time.online_placer import DemandQuota


def quota_until(
    arrivals: Arrivals, percent: int, *, time_limit_s: float = TIME_LIMIT_S, isolation: Isolation = "process"
) -> DemandQuota:
    """
    Return which part of each class of jobs the best plan places, of all that arrive until a horizon. Ours.

    The plan maximises the value that jobs state, by the relaxation over GPU patterns, beside what runs. The demand is
    the list's own mix of waiting jobs, each class scaled and rounded to whole jobs; a class rounded to none is refused.

    Parameters
    ----------
    arrivals
        The list, whose mix is used, and the cluster.
    percent
        Horizon: demand that arrives until then, in percent of the cluster's GPUs. The parts stay the same beyond it.
    time_limit_s, isolation
        See ``hindsight.placeable``.

    Returns
    -------
    DemandQuota
        Quota of the classes of ``arrivals.problem``, for ``OnlinePlacer``.

    Raises
    ------
    BadInput
        If ``percent`` is not a whole number of at least 1, or no waiting job requests a GPU.
    PlaceoptError
        If the relaxation was not solved in time.
    """
    expect("percent", percent, Integral, "a whole number")
    if percent < 1:
        raise BadInput(f"percent: {percent}, expected 1 or more, of the capacity asked for until the horizon")
    problem = arrivals.problem
    waiting = np.array([job for job in range(problem.num_jobs) if job not in problem.running], dtype=np.int64)
    classes, asked = problem.job_class[waiting], int(arrivals.milli[waiting].sum())
    if not asked:
        raise BadInput("arrivals: no job that waits asks for a GPU, so none of its demand is a percentage of them")
    there = np.bincount(classes, minlength=len(problem.class_communication))
    expected = np.rint(there * percent / 100 * arrivals.capacity / asked).astype(np.int64)
    member = np.zeros(len(there), dtype=np.int64)
    member[classes[::-1]] = waiting[::-1]  # of each class the first
    fillings = relaxation(arrivals, np.repeat(member, expected))
    values, _ = solve_relaxation(fillings.model, time_limit_s, isolation)
    class_of, planned = np.repeat(np.arange(len(there)), expected), np.zeros(len(there))
    for column, jobs in zip(fillings.start.tolist(), fillings.start_jobs, strict=True):
        planned[class_of[jobs[0]]] += values[column]
    return DemandQuota(expected, planned)
