"""The solvers of one round: an engine's runners, with the round's deadline, its cancel and its record of mishaps."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from placeopt.linear import LinearModel
from placeopt.solvers.beside import Beside
from placeopt.solvers.inprocess import InProcess
from placeopt.solvers.pool import Worker
from placeopt.solvers.race import RACE, race, share_out
from placeopt.solvers.result import Progress, Solution, SolveOptions
from placeopt.solving.context import SolveContext


class SolverRunners:
    """
    What stages solve with.

    Parameters
    ----------
    context
        Its deadline as it is at each call.
    runners
        Two, the second of which is for races only.
    """

    def __init__(self, context: SolveContext, runners: Sequence[Worker | InProcess]) -> None:
        self._context, self._runners = context, runners

    @property
    def is_apart(self) -> bool:
        """Whether solvers work in processes of their own, so that stages can go on meanwhile."""
        return isinstance(self._runners[0], Worker)

    def warm_up(self) -> None:
        """Let the runner that only races need load ahead."""
        self._runners[1].start()

    def solve(
        self,
        solver: str,
        model: LinearModel,
        options: SolveOptions,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> Solution:
        """See ``stages.solving.Solve``. In deterministic mode work ends a stage, and the deadline is only a guard."""
        context = self._context
        deadline, cancel = context.budget.deadline, context.cancelled
        if solver == RACE:
            contestants = share_out(self._runners, options.threads)
            found = race(contestants, model, options, deadline=deadline, on_progress=on_progress, cancel=cancel)
        else:
            runner = self._runners[0]
            found = runner.solve(solver, model, options, deadline=deadline, on_progress=on_progress, cancel=cancel)
        if found.limit == "user":
            context.note_limit("user")  # Ctrl-C came to the runner: no stage after this one begins
        if found.limit == "time" and context.budget.deterministic:
            context.note_limit("time")  # the clock has decided where work should: another run may find another plan
        if found.failed:
            context.last_solver_error = found.message or f"ended by {found.limit}"
        return found

    def begin(self, solver: str, model: LinearModel, options: SolveOptions) -> Beside:
        """See ``stages.solving.Begin``. It costs the stages no time, so it may go on until the plan is due."""
        limits = self._context.budget
        ends = limits.started + limits.time_limit_s
        return Beside(self._runners[0], solver, model, options, deadline=ends, cancel=self._context.cancelled)
