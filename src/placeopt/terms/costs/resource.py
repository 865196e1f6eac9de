"""Cost: what the chosen options cost wherever they run (GENIE eq. 10, computed by the author of the options)."""

from __future__ import annotations

from placeopt.linear import ModelBuilder
from placeopt.problem import Problem, State
from placeopt.terms.protocols import Cost, Expression, Part
from placeopt.terms.variables import Variables


class ResourceCost(Cost):
    """Sum of ``cost_milli`` of the options taken."""

    name = "resource"
    unit = "thousandths"
    never_lowered_by_starts = True

    def of(self, state: State, part: Part) -> int:
        """Sum over jobs."""
        placed = state.placed(part.jobs).values()
        return sum(int(state.problem.options.cost_milli[held.option]) for held in placed)

    def worst(self, problem: Problem) -> int:
        """Every job in its dearest option."""
        dearest = problem.most_of_class(problem.options.cost_milli)
        return int(dearest[problem.job_class].sum())

    def add_to(self, builder: ModelBuilder, variables: Variables) -> Expression:
        """Linear in the starts."""
        del builder
        v = variables
        fixed = self.score(v.problem, v.state.allocation())
        return v.start, v.problem.options.cost_milli[v.start_option], fixed
