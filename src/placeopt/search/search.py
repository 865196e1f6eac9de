"""The local search of a round: it starts from a plan, and holds the best one it met: value first, then cost."""

from __future__ import annotations

from placeopt.problem import Allocation, Problem
from placeopt.search import annealing
from placeopt.search.arrays import allocation_of, state_of
from placeopt.search.coverage import what_is_judged
from placeopt.search.judge import Judge
from placeopt.terms import Weighted

DECADES = 2
"""The temperature falls from a tenth of the mean cost of a job by so many powers of ten."""
STEPS_PER_JOB = 100
"""Steps a placed job that it takes to fall by a power of ten: with fewer ahead, the search begins colder."""


class LocalSearch:
    """
    Simulated annealing from ``allocation``, a plan that every rule allows; running jobs stay where it has them.

    The same ``seed`` and the same calls make the same steps, compiled or not.
    """

    def __init__(
        self, problem: Problem, allocation: Allocation, weighted: tuple[Weighted, ...], *, seed: int = 0
    ) -> None:
        """Take a round that `what_is_missing` finds nothing missing in."""
        self._problem, self._start = problem, allocation
        judged = what_is_judged(problem, weighted)
        self._state = state_of(problem, weighted, allocation, seed, judged)
        self._judge = None if judged is None else Judge(problem, allocation, self._state, judged)
        self.steps = 0

    @property
    def is_judged(self) -> bool:
        """Whether every placement is tried against rules of which the state has no differences."""
        return self._judge is not None

    @property
    def value(self) -> int:
        """Value of the options placed in the best plan; what changes of running jobs cost is not taken off."""
        return self._state.best_value

    @property
    def cost(self) -> int:
        """Cost level of the best plan."""
        return self._state.best_plan_cost

    def advance(self, steps: int, progress: float, ahead: float) -> None:
        """
        Take some steps, after a part ``progress`` of all, from 0 to 1, with some ``ahead`` steps altogether.

        Where a job costs nothing on average, only what is no worse is accepted.
        """
        state = self._state
        placed = max(1, state.placed_count)
        decades = min(DECADES, ahead / placed / STEPS_PER_JOB)
        coldest = state.best_plan_cost / placed * 0.1 ** (1 + DECADES)
        temperature = coldest * 10 ** (decades * (1 - progress))
        if self._judge is None:
            annealing.anneal(state, steps, temperature)
        else:
            for _ in range(steps):
                self._judge.step(temperature)
        self.steps += steps

    def allocation(self) -> Allocation:
        """Return the best plan."""
        return allocation_of(self._state, self._problem, self._start, best=True)
