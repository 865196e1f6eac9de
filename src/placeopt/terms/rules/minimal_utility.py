"""Rule: a job starts only where its utility reaches its minimum (SC'17 algorithm 1, TOPO-AWARE-P)."""

from __future__ import annotations

import numpy as np

from placeopt.linear import NO_LOWER, ModelBuilder
from placeopt.problem import Allocation, IntArray, Move, Placement, Problem, State, change_of
from placeopt.terms.costs.communication import alike_by_distance, price_start
from placeopt.terms.costs.interference import Interference
from placeopt.terms.costs.utility import longest_path_for, most_path, talks, utility
from placeopt.terms.linearized_costs import CostPrices
from placeopt.terms.protocols import Form
from placeopt.terms.variables import MOVE, NEW, Variables


class MinimalUtility:
    """
    Under ``policy.postpone.rule = "utility"`` a job that starts in the round, or is moved, has its minimal utility.

    Judged is the plan as a whole, running jobs and all jobs that start included, since they slow each other. A running
    job that stays is not judged: its minimum applies to starts only. (The artifact judges one decision at a time, so a
    job placed later in a round may push an earlier one below its minimum; here neither may.)
    """

    name = "minimal_utility"

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
        return _limit(problem, option) is not None

    def form(self, problem: Problem) -> Form:
        """
        Exact where no judged job can be disturbed: the longest path is a row. Else co-runners are left out.

        With ``sum``, which GPUs of a node are left counts too, where its sockets are of unequal size.
        """
        if not applies(problem):
            return "exact"
        level = all(len(set(root.tolist())) <= 1 for root in problem.topology.root)
        disturbed = problem.policy.postpone.utility == "sum" and _unequal_sockets(problem)
        if problem.policy.interference.model == "curve":
            disturbed = disturbed or Interference().worst(problem) > 0
        else:
            profiles = {
                int(problem.class_profile[k]) for o, k in enumerate(problem.options.job_class) if _judged(problem, o)
            } - {-1}
            disturbed = disturbed or any(problem.slowdown[:, p].any() for p in profiles)
        return "exact" if level and not disturbed else "bound"

    def add_to(self, builder: ModelBuilder, variables: Variables) -> None:
        """Limit the path of every judged start to the longest at which it can reach its minimum undisturbed."""
        v, problem = variables, variables.problem
        if not applies(problem):
            return
        for s, option in enumerate(v.start_option.tolist()):
            if v.start_kind[s] not in (NEW, MOVE):
                continue
            longest = _limit(problem, option)
            if longest is not None:
                prices = CostPrices(builder)
                price_start(prices, v, s, 1)
                builder.add_row(*prices.hand_over(), NO_LOWER, longest)
            elif _hopeless(problem, option):
                builder.add_row(v.start[s : s + 1], [1], NO_LOWER, 0)


def applies(problem: Problem) -> bool:
    """Return whether the policy postpones by utility."""
    return problem.policy.postpone.rule == "utility"


def falls_short(state: State, job: int) -> bool:
    """Return whether a placed job is judged and its utility is below its minimum."""
    least, held = state.problem.instance.jobs[job].utility_min_thousandths, state.placements[job]
    if least is None or held is None or (job in state.problem.running and not _moved(state.problem, job, held)):
        return False
    return utility(state, job) < least


def shortfalls(state: State) -> dict[int, int]:
    """Return the jobs of a state that fall short of their minimum, and by how much, in thousandths."""
    least = [job.utility_min_thousandths or 0 for job in state.problem.instance.jobs]
    return {job: low - utility(state, job) for job, low in enumerate(least) if falls_short(state, job)}


def withdrawn(problem: Problem, allocation: Allocation) -> Allocation:
    """
    Return ``allocation`` without the jobs that fall short: one after the other, the one that lacks most first.

    What a relaxed model finds may hold such jobs. One that only changed its place stays: only its former place is left
    to it, which others may have taken.
    """
    if not applies(problem):
        return allocation
    state = State(problem, allocation)
    while short := {job: lack for job, lack in shortfalls(state).items() if job not in problem.running}:
        state.apply(Move(max(short, key=lambda job: short[job]), None))
    return state.allocation()


def _moved(problem: Problem, job: int, placement: Placement) -> bool:
    return job in problem.may_move and change_of(problem, job, placement) == "moved"


def _judged(problem: Problem, option: int) -> bool:
    """Return whether the rule looks at jobs in the option."""
    least = problem.class_utility_min[problem.options.job_class[option]]
    return applies(problem) and bool(least >= 0 and problem.options.gpus[option])


def _limit(problem: Problem, option: int) -> int | None:
    """Return the longest path at which a job in the option can reach its minimum; None if paths do not matter."""
    if not _judged(problem, option) or not talks(problem, option):
        return None
    least = int(problem.class_utility_min[problem.options.job_class[option]])
    longest = longest_path_for(problem, option, least)
    return None if longest == most_path(problem, option) else longest


def _hopeless(problem: Problem, option: int) -> bool:
    """Return whether a job in the option reaches its minimum nowhere: it asks for more than 1000."""
    return _judged(problem, option) and bool(problem.class_utility_min[problem.options.job_class[option]] > 1000)


def _unequal_sockets(problem: Problem) -> bool:
    """Return whether some node has sockets of different numbers of GPUs."""
    sizes: dict[int, set[int]] = {}
    if not problem.num_gpus:
        return False
    parts, counts = np.unique(np.stack([problem.gpu_node, problem.gpu_socket]), axis=1, return_counts=True)
    for node, size in zip(parts[0].tolist(), counts.tolist(), strict=True):
        sizes.setdefault(node, set()).add(size)
    return any(len(of_node) > 1 for of_node in sizes.values())
