"""What a cost and a rule must state. One file holds one of them; common tests find every new one."""

from __future__ import annotations

from typing import Literal, Protocol

from placeopt.linear import ModelBuilder
from placeopt.problem import Allocation, IntArray, Move, Placement, Problem, State
from placeopt.terms.variables import Variables

Form = Literal["exact", "bound"]
"""Whether the linear form equals the score for every placement, or only never exceeds it."""

Expression = tuple[IntArray, IntArray, int]
"""Columns, coefficients and a constant: ``constant + sum coefficients * columns``."""


class Rule(Protocol):
    """What is allowed."""

    name: str

    def fits(self, state: State, job: int, placement: Placement) -> bool:
        """Tell whether a job that is nowhere in ``state`` may be put to ``placement``."""
        ...

    def add_to(self, builder: ModelBuilder, variables: Variables) -> None:
        """Add the rows that allow exactly what ``fits`` allows."""
        ...


class Apart(Protocol):
    """What must not be folded: costs, and rules that look at one job's GPUs."""

    def resolution(self, problem: Problem) -> IntArray | None:
        """Shape (G,): GPUs of equal number are alike to it; None: GPUs of a node are all alike."""
        ...

    def tells_apart(self, problem: Problem, option: int) -> bool:
        """Tell whether jobs of this option must each have columns of their own, rather than be counted together."""
        ...


class Cost(Apart, Protocol):
    """What is good: an integer, the lower the better."""

    name: str
    unit: str

    def score(self, problem: Problem, allocation: Allocation) -> int:
        """Return the cost of the whole allocation: the one definition."""
        ...

    def delta(self, state: State, move: Move) -> int:
        """Return exactly ``score(after) - score(before)`` without changing ``state``."""
        ...

    def worst(self, problem: Problem) -> int:
        """Return a constant of the instance that no allocation's score exceeds (0: the term cannot cost anything)."""
        ...

    def form(self, problem: Problem) -> Form:
        """Tell whether ``add_to`` is exact for this problem."""
        ...

    def add_to(self, builder: ModelBuilder, variables: Variables) -> Expression:
        """Add columns and rows as needed and return the cost, or a lower bound on it, as an expression."""
        ...
