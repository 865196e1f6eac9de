"""What any plan in hindsight could have placed of the pods that arrived: a bound, by the relaxation over fillings."""

from __future__ import annotations

import numpy as np

from placeopt.errors import PlaceoptError
from placeopt.formulations.fillings import Fillings, build_fillings, gpu_milli_objective
from placeopt.linear import LinearModel
from placeopt.papers.one_at_a_time.arrivals import Arrivals, arrivals_of
from placeopt.problem import State
from placeopt.solvers import highs
from placeopt.solvers.result import Solution, SolveOptions

SECONDS = 60.0


def hindsight(arrivals: Arrivals, order: np.ndarray, percent: int) -> float:
    """
    Bound on what ``Arrivals.allocated`` says of ``percent`` arrived, for any policy: one that refuses, knows, or moves.

    No step of those that round to ``percent`` can have more allocated than had arrived by then, nor more than the best
    plan could place of all that had arrived by the last of them.
    """
    arrived = arrivals.arrived(order)
    steps = np.flatnonzero(arrived == percent)
    most = placeable(arrivals, order[: steps[-1] + 1])
    asked = np.cumsum(arrivals.milli[order])[steps]
    return float(100 * np.minimum(asked, most).mean() / arrivals.capacity)


def placeable(arrivals: Arrivals, pods: np.ndarray) -> int:
    """
    Bound, proven by duals in integers, on the GPU-milli of ``pods`` that fit onto the empty cluster together.

    Raises
    ------
    PlaceoptError
        If the relaxation was not solved in a minute.
    """
    fillings = relaxation(arrivals, pods)
    bound = solved(gpu_milli_objective(fillings)).bound
    assert bound is not None
    return bound


def relaxation(arrivals: Arrivals, pods: np.ndarray) -> Fillings:
    """Return the relaxation of placing ``pods`` on the empty cluster; its job i is ``pods[i]``."""
    instance = arrivals.instance
    jobs = [instance.jobs[pod].model_copy(update={"id": f"arrival-{i}"}) for i, pod in enumerate(pods.tolist())]
    return build_fillings(State(arrivals_of(instance.model_copy(update={"jobs": tuple(jobs)})).problem))


def solved(model: LinearModel) -> Solution:
    """
    Solve the linear program.

    Raises
    ------
    PlaceoptError
        If that takes more than a minute.
    """
    solution = highs.solve(model, SolveOptions(time_limit_s=SECONDS, relax=True, extra=(("presolve", "off"),)))
    if solution.status != "optimal" or solution.bound is None:
        raise PlaceoptError(f"hindsight: the relaxation ended with {solution.status} ({solution.message})")
    return solution
