"""How stages reach a solver: a function that the engine hands them, with deadline, cancel and process inside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from placeopt.linear import LinearModel
from placeopt.solvers.beside import Beside
from placeopt.solvers.result import Progress, Solution, SolveOptions


class Solve(Protocol):
    """Solve ``model`` by the named solver before the round's deadline."""

    def __call__(
        self,
        solver: str,
        model: LinearModel,
        options: SolveOptions,
        on_progress: Callable[[Progress], None] | None = None,
    ) -> Solution:
        """Return what the solver found; never raises for what a solver does."""
        ...


class Begin(Protocol):
    """Begin to solve ``model`` by the named solver while stages go on that need none."""

    def __call__(self, solver: str, model: LinearModel, options: SolveOptions) -> Beside:
        """Return the solve, which whoever began it waits for or drops."""
        ...
