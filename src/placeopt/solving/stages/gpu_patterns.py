"""
Stage ``gpu-patterns``: a plan from the relaxation over patterns of single GPUs, first by class of nodes, then by node.

The relaxation with a price for full nodes is solved, rounded by diving, and made into bundles on nodes; greedy places
what is left. The search goes on from there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from placeopt.formulations.gpu_patterns import GpuPatterns
from placeopt.heuristics.bundles import realise
from placeopt.linear import IntArray
from placeopt.problem import Allocation, Move, Problem, State
from placeopt.readable import plural
from placeopt.solvers.diving import rounded_down
from placeopt.solvers.result import Solution
from placeopt.solving.context import SolveContext
from placeopt.solving.greedy_rule import has_many_fractions
from placeopt.solving.stage import StageReport
from placeopt.solving.stages.bound import quotas, rounding_of
from placeopt.solving.stages.greedy import LEAST_S
from placeopt.terms.rules import fits


@dataclass(frozen=True)
class GpuPatternPlan:
    """Offers a plan made from the relaxation that `Bound` hands on."""

    name: ClassVar[str] = "gpu-patterns"
    uses_solver: ClassVar[bool] = True

    def skip_reason(self, context: SolveContext) -> str | None:
        """Only with a relaxation, in rounds of many fractions, while the value is open; once."""
        if context.handover.gpu_patterns is None or not has_many_fractions(context.problem):
            return "the round has no relaxation over many fractions"
        if not len(context.handover.gpu_patterns.gpu_pattern):
            return "the relaxation only sums shares up"
        if context.has_finished(self.name):
            return "it has run"
        return "the value is proven" if context.value_proven else None

    def run(self, context: SolveContext) -> Iterator[StageReport]:
        """Solve, round, place, offer."""
        patterns, budget = context.handover.gpu_patterns, context.budget
        assert patterns is not None  # noqa: S101 - see `skip_reason`
        context.finish(self.name)
        detail = plural(len(patterns.gpu_pattern), "GPU pattern")
        values = _rounded(context, patterns)
        if values is None:
            yield StageReport(f"{detail}: no solution in its time", "kept")
            return
        allocation = _realised(context, patterns, values)
        offer = context.incumbent.offer(allocation) if budget.has_left(budget.offer_s) else None
        yield StageReport(detail, offer=offer)


def _rounded(context: SolveContext, patterns: GpuPatterns) -> IntArray | None:
    """Return rounded values of the relaxation with a price for full nodes, down where time ended the dive."""
    begun, budget = context.handover.begun_bound, context.budget
    seconds = max(budget.left_s - budget.offer_s, 0.0)
    if begun is not None and begun.rounds:
        found = begun.beside.wait(seconds) or begun.beside.latest
        begun.beside.drop()
        if isinstance(found, Solution):
            context.solvers.note(found)
            if found.rounded is not None:
                return found.rounded
        if found is not None and found.relaxed_values is not None:
            return rounded_down(found.relaxed_values)
    options = replace(budget.whole_options(), relax=True, rounding=rounding_of(context.problem, patterns))
    solution = context.solvers.solve("highs", patterns.model, options)
    if solution.rounded is None and solution.limit == "time" and solution.relaxed_values is not None:
        return rounded_down(solution.relaxed_values)
    return solution.rounded


def _realised(context: SolveContext, patterns: GpuPatterns, values: IntArray) -> Allocation:
    """Return an allocation of what the values count, filled up by greedy."""
    budget, problem = context.budget, context.problem
    state = State(problem)
    placed, _ = realise(state, quotas(patterns, values), budget.stopped)
    allocation = list(state.placements)
    for job, placement in placed:
        allocation[job] = placement
    start = _allowed(problem, tuple(allocation))
    with budget.heuristic(least_s=LEAST_S) as deadline:
        return context.greedy.fill_up(problem, budget, start, deadline)


def _allowed(problem: Problem, allocation: Allocation) -> Allocation:
    """Return the allocation without the placements that break rules which bundles leave out."""
    options = problem.options
    plain = not options.gpu_memory_mib.any() and problem.jobs_per_gpu is None and not problem.has_shared_limits
    if plain and _one_type_a_node(problem):
        return allocation
    state = State(problem)
    kept = list(state.placements)
    for job, placement in enumerate(allocation):
        if placement is not None and kept[job] is None and fits(state, job, placement):
            state.apply(Move(job, placement))
            kept[job] = placement
    return tuple(kept)


def _one_type_a_node(problem: Problem) -> bool:
    first_of_node = problem.node_gpu_start[problem.gpu_node]
    return bool((problem.gpu_type[first_of_node] == problem.gpu_type).all())
