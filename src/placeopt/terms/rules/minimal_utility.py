"""Rule: a job starts only where its utility reaches its minimum (SC'17 algorithm 1, TOPO-AWARE-P)."""

from __future__ import annotations

import numpy as np

from placeopt.linear import NO_LOWER, ModelBuilder
from placeopt.problem import IntArray, Move, Placement, Problem, State, change_of
from placeopt.terms.costs.communication import alike_by_distance, price_start
from placeopt.terms.costs.utility import talks, utility, utility_of_path
from placeopt.terms.linearized_costs import CostPrices
from placeopt.terms.variables import Variables


class MinimalUtility:
    """
    Under ``policy.postpone.rule = "utility"`` a job that starts in the round, or is moved, has its minimal utility.

    Judged is the plan as a whole, running jobs and all jobs that start included, since they slow each other. A running
    job that stays is not judged: its minimum applies to starts only. (The artifact judges one decision at a time, so a
    job placed later in a round may push an earlier one below its minimum; here neither may.)
    """

    def fits(self, state: State, job: int, placement: Placement) -> bool:
        """Return whether the job reaches its minimum there, and those that started on its nodes keep theirs."""
        if not applies(state.problem) or not placement.gpus:
            return True
        undo = state.apply(Move(job, placement))
        beside = dict.fromkeys(other for node in placement.nodes for other in state.node_jobs[node])
        reached = all(not falls_short(state, other) for other in beside)
        state.apply(undo)
        return reached

    def gpu_classes(self, problem: Problem) -> IntArray | None:
        """GPUs alike: those that swap without changing any distance."""
        apart = any(self.forbids_folding(problem, o) for o in range(len(problem.options)))
        return alike_by_distance(problem) if apart else None

    def forbids_folding(self, problem: Problem, option: int) -> bool:
        """Return whether paths of jobs in the option are limited, each by itself."""
        return _longest(problem, option) is not None

    def add_to(self, builder: ModelBuilder, variables: Variables) -> None:
        """Limit the path of every start to the longest at which it reaches its minimum undisturbed: a bound."""
        v = variables
        for s in np.flatnonzero(v.starts_new).tolist() if applies(v.problem) else ():
            longest = _longest(v.problem, int(v.start_option[s]))
            if longest is not None and longest < 0:
                builder.add_row(v.start[s : s + 1], [1], NO_LOWER, 0)
            elif longest is not None:
                prices = CostPrices(builder)
                price_start(prices, v, s, 1)
                builder.add_row(*prices.hand_over(), NO_LOWER, longest)


def applies(problem: Problem) -> bool:
    """Return whether the policy postpones by utility."""
    return problem.policy.postpone.rule == "utility"


def falls_short(state: State, job: int) -> int:
    """Return by how much the utility of a placed job that is judged is below its minimum, in thousandths; 0: not."""
    problem, held = state.problem, state.placements[job]
    if held is None or not applies(problem):
        return 0
    if job in problem.running and (job not in problem.may_move or change_of(problem, job, held) != "moved"):
        return 0
    return shortfall(state, job)


def shortfall(state: State, job: int) -> int:
    """Return by how much the utility of a job is below its minimum where it is, in thousandths, by any policy."""
    least = state.problem.instance.jobs[job].utility_min_thousandths
    return 0 if least is None else max(0, least - utility(state, job))


def _longest(problem: Problem, option: int) -> int | None:
    """Return the longest path at which a job in the option may reach its minimum; -1: at none; None: at any."""
    least, n = (
        int(problem.class_utility_min[problem.options.job_class[option]]),
        int((problem.options.workers * problem.options.gpus)[option]),
    )
    if not applies(problem) or least < 0 or not n:
        return None
    most = n * (n - 1) // 2 * problem.topology.max_distance if talks(problem, option) else 0
    low, high = -1, most + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if utility_of_path(problem, option, middle) >= least else (low, middle)
    return None if low == most else low
