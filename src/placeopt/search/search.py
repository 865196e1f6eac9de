"""The local search of a round: it starts from a plan, and holds the best one it met: value first, then cost."""

from __future__ import annotations

from placeopt.problem import Allocation, Placement, Problem
from placeopt.search import annealing
from placeopt.search.arrays import state_of
from placeopt.search.coverage import what_is_judged
from placeopt.search.entries import Entries, allocation_of
from placeopt.search.judge import Judge
from placeopt.terms import Weighted

DECADES = 2
"""The temperature falls from at most a tenth of the mean cost of a job, to a tenth of so many powers of ten less."""
STEPS_PER_JOB = 128
"""Steps a placed job that it takes to fall by a power of ten: a shorter cycle begins colder."""


class LocalSearch:
    """
    Simulated annealing from ``allocation``, a plan that every rule allows.

    Running jobs that may be moved or preempted are changed at their price, others stay where it has them.

    The temperature falls in cycles. Each is twice as long as the one before, and begins hotter: so the search is
    greedy at first, and need not know how many steps there will be. The same ``seed`` and the same calls make the same
    steps, compiled or not.
    """

    def __init__(
        self, problem: Problem, allocation: Allocation, weighted: tuple[Weighted, ...], *, seed: int = 0
    ) -> None:
        """Take a round that `what_is_missing` finds nothing missing in."""
        self._problem, self._start = problem, allocation
        judged = what_is_judged(problem, weighted)
        self.state = state_of(problem, weighted, allocation, seed, judged)
        self._judge = None if judged is None else Judge(problem, allocation, self.state, judged)
        self._made: dict[Entries, Placement] = {}  # what was read of the state before
        self._length, self._left = max(1, self.state.placed_count), 0
        self._best_before = self._best
        self.steps, self.has_stalled = 0, False
        """Steps so far; whether the last whole cycle and what came after it, half of them or more, gained nothing."""

    @property
    def is_judged(self) -> bool:
        """Whether every placement is tried against rules of which the state has no differences."""
        return self._judge is not None

    @property
    def value(self) -> int:
        """Value of the best plan; the price of changes that the search does not make is not taken off."""
        return self.state.best_value

    @property
    def cost(self) -> int:
        """Cost level of the best plan."""
        return self.state.best_plan_cost

    def limit_cost(self, most: int | None) -> None:
        """Let no step raise the cost above so much, whatever it gains; None: steps may cost anything."""
        self.state.most_cost = self.state.never if most is None else min(most, self.state.never)

    @property
    def cooling_steps(self) -> int:
        """Steps in which the temperature falls all the way."""
        return DECADES * STEPS_PER_JOB * max(1, self.state.placed_count)

    def advance(self, steps: int) -> None:
        """
        Take some steps, fewer where another thread calls `stop` meanwhile.

        Where a job costs nothing on average, only what is no worse is accepted.
        """
        ends = self.steps + steps
        while self.steps < ends and not self.state.stopped:
            if self._left == 0:
                self._begin_cycle()
            decades = min(DECADES, self._length / max(1, self.state.placed_count) / STEPS_PER_JOB)
            heat = 10.0 ** (decades * self._left / self._length - DECADES - 1)
            cooling = 10.0 ** (-decades / self._length)
            taken = self._anneal(min(ends - self.steps, self._left), heat, cooling)
            self._left -= taken
            self.steps += taken
            self.has_stalled = self._best == self._best_before and (self._left == 0 or self.has_stalled)

    @property
    def _best(self) -> tuple[int, int]:
        return self.value, -self.cost

    def _begin_cycle(self) -> None:
        self._length *= 2
        self._left, self._best_before = self._length, self._best

    def _anneal(self, steps: int, heat: float, cooling: float) -> int:
        if self._judge is None:
            return annealing.anneal(self.state, steps, heat, cooling)
        return self._judge.anneal(steps, heat, cooling)

    def stop(self, stopped: bool = True) -> None:
        """End `advance` within a step, or, with false, let it go on when it is called again."""
        self.state.stopped = int(stopped)

    def allocation(self) -> Allocation:
        """Return the best plan."""
        return allocation_of(self.state, self._problem, self._start, self._made)
