"""The solvers of one round: warm runners, with the round's deadline, its cancel and its record of failed solves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from placeopt.linear import LinearModel
from placeopt.solvers.pool import Worker
from placeopt.solvers.racing import RACE, Beside, race
from placeopt.solvers.result import Progress, Solution, SolveOptions

if TYPE_CHECKING:
    from placeopt.solving.context import SolveContext


class Solve(Protocol):
    """Solve ``model`` by the named solver before the deadline of the round."""

    def __call__(
        self,
        solver: str,
        model: LinearModel,
        options: SolveOptions,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> Solution:
        """Return what the solver found; never raises for what a solver does."""
        ...


class SolverRunners:
    """What stages solve with: two runners, the second of which is for races only; none in a context without stages."""

    def __init__(self, context: SolveContext, runners: Sequence[Worker]) -> None:
        self._context, self._runners = context, runners

    @property
    def is_apart(self) -> bool:
        """Whether solvers work in processes of their own, so that stages can go on meanwhile."""
        return self._runners[0].isolation == "process"

    def warm_up(self) -> None:
        """Begin to load the runner that only races need, while a model is built."""
        self._runners[1].start()

    def solve(
        self,
        solver: str,
        model: LinearModel,
        options: SolveOptions,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> Solution:
        """Solve a model before the deadline of the stages; see `Solve`."""
        budget = self._context.budget
        deadline, cancel = budget.deadline, budget.cancelled
        if solver == RACE:
            solution = race(self._runners, model, options, deadline=deadline, on_progress=on_progress, cancel=cancel)
        else:
            runner = self._runners[0]
            solution = runner.solve(solver, model, options, deadline=deadline, on_progress=on_progress, cancel=cancel)
        if not solution.failed:
            budget.note_limit(solution.limit)  # where the runner received Ctrl-C, no stage after this one begins
        self.note(solution)
        return solution

    def note(self, solution: Solution) -> None:
        """Keep why a solver failed for the record of the stage that asked it; those that work beside are asked late."""
        cause = (solution.message or f"ended by {solution.limit}") if solution.failed else solution.outlived
        self._context.solver_error = cause or self._context.solver_error

    def begin(self, solver: str, model: LinearModel, options: SolveOptions) -> Beside:
        """Begin to solve a model beside stages; it costs them no time, so it may take until the plan is due."""
        budget = self._context.budget
        return Beside(self._runners[0], solver, model, options, deadline=budget.ends, cancel=budget.cancelled)
