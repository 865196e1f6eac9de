"""Large neighbourhood search: jobs are taken away and put back, and what is worse is undone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from placeopt.heuristics.search.destroy import Destroy
from placeopt.heuristics.search.guide import Guide
from placeopt.heuristics.search.incremental_solution import IncrementalSolution, Mark
from placeopt.heuristics.search.repair import Repair
from placeopt.problem import Allocation, IntArray, Problem
from placeopt.terms.objective import Weighted

NOISE = 0.5
"""How far the order among jobs of equal worth is shaken, in every other step."""


class Search:
    """
    A plan that only gets better: first its value, then, at equal value, its cost (Shaw 1998; Schrimpf et al. 2000).

    A step takes jobs away (``Destroy``), puts waiting ones back (``Repair``), and is undone if what comes out is worse.
    Running jobs stay where the given allocation has them.

    Parameters
    ----------
    problem, allocation, weighted
        The round, a plan that every rule allows, and the costs that count.
    guide
        What a relaxation says; None: jobs of equal worth are compared by what their traffic costs at least.
    seed
        The same seed makes the same steps.
    stop
        Asked between placements; once it is true a step ends, and is undone unless it is better by then.
    """

    def __init__(
        self,
        problem: Problem,
        allocation: Allocation,
        weighted: tuple[Weighted, ...],
        *,
        guide: Guide | None = None,
        seed: int = 0,
        stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self._rng = np.random.default_rng(seed)
        self._solution = IncrementalSolution(problem, allocation, weighted)
        self._recreate = Repair(self._solution, guide, stop)
        self._ruin = Destroy(self._solution, self._recreate.density, self._rng)

    @property
    def value(self) -> int:
        """Net value."""
        return self._solution.value

    @property
    def cost(self) -> int:
        """Cost level."""
        return self._solution.cost

    @property
    def allocation(self) -> Allocation:
        """The plan."""
        return self._solution.state.allocation()

    def rebuild(self, chosen: IntArray | None = None) -> bool:
        """
        Take all jobs away but the running ones and put them back; tells whether the plan is better for it.

        ``chosen`` are jobs to be put back before all others; None: those that a knapsack chooses.
        """
        mark = self._solution.mark()
        self._ruin.remove_all()
        self._recreate.fill(self._waiting(), self._rng, chosen=chosen)
        return self._judge(mark)

    def step(self) -> bool:
        """Change a part of the plan; tells whether it is better for it."""
        mark = self._solution.mark()
        first = self._ruin.some(self._waiting())
        noise = NOISE if self._rng.random() < 0.5 else 0.0
        self._recreate.fill(self._waiting(), self._rng, noise=noise, first=first)
        return self._judge(mark)

    def _waiting(self) -> IntArray:
        placements = self._solution.state.placements
        nowhere = np.array([placement is None for placement in placements], dtype=bool)
        return np.flatnonzero(nowhere & self._recreate.able)

    def _judge(self, mark: Mark) -> bool:
        """Go back where the plan is worse; what is just as good is kept, so that the search moves on."""
        solution = self._solution
        before, now = (mark[1], -mark[2]), (solution.value, -solution.cost)
        if now < before:
            solution.roll_back(mark)
        solution.commit()
        return now > before
