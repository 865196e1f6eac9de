"""How stages reach a solver: with deadline, cancel and process inside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from placeopt.linear import LinearModel
from placeopt.solvers.beside import Beside
from placeopt.solvers.result import Progress, Solution, SolveOptions


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


class Solvers(Protocol):
    """The solvers of one round."""

    @property
    def is_apart(self) -> bool:
        """Whether solvers work in processes of their own, so that stages can go on meanwhile."""
        ...

    @property
    def solve(self) -> Solve:
        """Solve a model before the deadline of the stages."""
        ...

    def begin(self, solver: str, model: LinearModel, options: SolveOptions) -> Beside:
        """Begin to solve a model while stages run that need no solver; the caller waits for the result or drops it."""
        ...

    def warm_up(self) -> None:
        """Load the second solver, which only races need, ahead of them."""
        ...
