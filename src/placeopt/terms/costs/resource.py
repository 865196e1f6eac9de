"""Cost: what the chosen options cost wherever they run (GENIE eq. 10, computed by the author of the options)."""

from __future__ import annotations

import numpy as np

from placeopt.linear import ModelBuilder
from placeopt.problem import Allocation, Move, Problem, State
from placeopt.terms.protocols import Cost, Expression
from placeopt.terms.variables import Variables


class ResourceCost(Cost):
    """Sum of ``cost_milli`` of the options taken."""

    name = "resource"
    unit = "thousandths"
    never_lowered_by_starts = True

    def score(self, problem: Problem, allocation: Allocation) -> int:
        """Sum over jobs."""
        return sum(int(problem.options.cost_milli[p.option]) for p in allocation if p is not None)

    def delta(self, state: State, move: Move) -> int:
        """Difference of the two options."""
        cost, before = state.problem.options.cost_milli, state.placements[move.job]
        return (0 if move.placement is None else int(cost[move.placement.option])) - (
            0 if before is None else int(cost[before.option])
        )

    def worst(self, problem: Problem) -> int:
        """Every job in its dearest option."""
        dearest = np.zeros(len(problem.class_communication), dtype=np.int64)
        np.maximum.at(dearest, problem.options.job_class, problem.options.cost_milli)
        return int(dearest[problem.job_class].sum())

    def add_to(self, builder: ModelBuilder, variables: Variables) -> Expression:
        """Linear in the starts."""
        del builder
        v = variables
        fixed = self.score(v.problem, v.state.allocation())
        return v.start, v.problem.options.cost_milli[v.start_option], fixed
