"""A bound on the jobs that any plan in hindsight could have placed, by the relaxation over GPU patterns."""

from __future__ import annotations

import time
from typing import Literal

import numpy as np

from placeopt import BadInput, PlaceoptError
from placeopt.formulations.gpu_patterns import GpuPatterns, build_gpu_patterns, gpu_milli_objective
from placeopt.linear import LinearModel
from placeopt.problem import IntArray, State, compile_problem
from placeopt.solvers.pool import Worker
from placeopt.solvers.result import SolveOptions
from placeopt_papers.one_at_a_time.arrivals import Arrivals

Isolation = Literal["process", "thread"]
TIME_LIMIT_S = 60.0


def hindsight(
    arrivals: Arrivals,
    order: IntArray,
    percent: int,
    *,
    time_limit_s: float = TIME_LIMIT_S,
    isolation: Isolation = "process",
) -> float:
    """
    Bound on what ``Arrivals.allocated`` says of ``percent`` arrived, for any policy: one that refuses, knows, or moves.

    No step of those that round to ``percent`` can have more allocated than had arrived by then, nor more than the best
    plan could place of all that had arrived by the last of them.

    Parameters
    ----------
    arrivals, order
        Jobs and nodes, and the jobs as they come.
    percent
        Of the capacity that was asked for by then.
    time_limit_s, isolation
        See ``placeable``.

    Returns
    -------
    float
        Percent of the capacity.

    Raises
    ------
    BadInput
        If no step rounds to ``percent``.
    PlaceoptError
        See ``placeable``.
    """
    arrived = arrivals.arrived(order)
    steps = np.flatnonzero(arrived == percent)
    if not len(steps):
        last = int(arrived[-1]) if len(arrived) else 0
        raise BadInput(f"percent: {percent}, but no arrival rounds to it; these go up to {last} %")
    most = placeable(arrivals, order[: steps[-1] + 1], time_limit_s=time_limit_s, isolation=isolation)
    asked = np.cumsum(arrivals.milli[order])[steps]
    return float(100 * np.minimum(asked, most).mean() / arrivals.capacity)


def placeable(
    arrivals: Arrivals, jobs: IntArray, *, time_limit_s: float = TIME_LIMIT_S, isolation: Isolation = "process"
) -> int:
    """
    Bound, proven by duals in integers, on the GPU-milli of ``jobs`` that fit together beside what runs already.

    Parameters
    ----------
    arrivals, jobs
        Jobs and nodes, and those of the jobs that are meant, any of them as often as it came.
    time_limit_s
        Wall-clock seconds for the linear program.
    isolation
        Where it is solved; see `placeopt.Engine`.

    Raises
    ------
    BadInput
        If there is no such isolation, or no time.
    PlaceoptError
        If the relaxation was not solved in time.
    """
    fillings = relaxation(arrivals, jobs)
    return solve_relaxation(gpu_milli_objective(fillings), time_limit_s, isolation)[1] - fillings.fixed_milli


def relaxation(arrivals: Arrivals, jobs: IntArray) -> GpuPatterns:
    """Return the relaxation of placing ``jobs`` beside what runs and stays; its job i is ``jobs[i]``."""
    instance = arrivals.instance
    run = {held.job for held in instance.running}
    # no other id holds a blank
    copies = [instance.jobs[job].model_copy(update={"id": f"arrival {i}"}) for i, job in enumerate(jobs.tolist())]
    kept = [job for job in instance.jobs if job.id in run]
    made = instance.model_copy(update={"jobs": tuple(copies + kept)})
    return build_gpu_patterns(State(compile_problem(made)))


def solve_relaxation(model: LinearModel, time_limit_s: float, isolation: Isolation) -> tuple[np.ndarray, int]:
    """
    Solve a linear program; return its values, (n,), and the bound that its duals prove in integers.

    Raises
    ------
    BadInput
        If there is no such isolation, or no time.
    PlaceoptError
        If it was not solved in time.
    """
    if isolation not in ("process", "thread"):
        raise BadInput(f"isolation: {isolation!r}, expected process or thread")
    if not time_limit_s > 0:
        raise BadInput(f"time_limit_s: {time_limit_s}, expected seconds above 0")
    if not model.num_variables:  # none of the jobs fits anywhere, or there are none
        return np.zeros(0), model.offset
    options = SolveOptions(time_limit_s, relax=True, extra=(("presolve", "off"),))
    with Worker(("highs",), isolation) as worker:
        solution = worker.solve("highs", model, options, deadline=time.monotonic() + time_limit_s)
    if solution.limit == "user":  # Ctrl-C, which the worker took as an answer
        raise KeyboardInterrupt
    values, bound = solution.relaxed_values, solution.bound
    if solution.status != "optimal" or values is None or bound is None:
        raise PlaceoptError(
            f"hindsight: the relaxation ended with {solution.status} after {time_limit_s:g} s ({solution.message}); "
            "allow more by time_limit_s"
        )
    return values, bound
