"""What a cost and a rule must state. One file holds one of them; common tests find every new one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Literal, Protocol

from placeopt.linear import ModelBuilder
from placeopt.model import Policy
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
        """Return whether a job that is not placed in ``state`` may be put to ``placement``."""
        ...

    def add_to(self, builder: ModelBuilder, variables: Variables) -> None:
        """Add the rows that allow exactly what ``fits`` allows."""
        ...


class FoldGuard(Protocol):
    """What a formulation must not fold: stated by costs, and by rules that depend on which GPUs a job holds."""

    def gpu_classes(self, problem: Problem) -> IntArray | None:
        """Shape (G,): GPUs of one node with equal numbers are interchangeable; None: all of a node and type are."""
        ...

    def forbids_folding(self, problem: Problem, option: int) -> bool:
        """Return whether each job of this option needs columns of its own, instead of being counted with its class."""
        ...


class Cost(ABC):
    """
    What is good: an integer of at least 0 in raw units of the cost, the lower the better.

    What a cost does not state has the safe or the common answer: one form, exact, blind to single GPUs, unknown to
    relaxations.
    """

    name: str
    """Field of ``policy.weights``, and key in a plan's ``costs``."""
    unit: str
    default_weight = 0
    """Thousandths: the default of the field of ``policy.weights``."""
    never_lowered_by_starts = False
    """Whether no start lowers the score, so that the score of the running jobs alone bounds it from below."""

    def selected_by(self, policy: Policy) -> bool:
        """Return whether this is the form of the cost that the policy names; True for a cost of one form."""
        del policy
        return True

    def gpu_classes(self, problem: Problem) -> IntArray | None:
        """As of `FoldGuard`; by default all GPUs of a node and type are interchangeable."""
        del problem
        return None

    def forbids_folding(self, problem: Problem, option: int) -> bool:
        """As of `FoldGuard`; by default no job needs columns of its own."""
        del problem, option
        return False

    def form(self, problem: Problem) -> Form:
        """Return whether ``add_to`` equals the score in this round, which it does by default, or never exceeds it."""
        del problem
        return "exact"

    @abstractmethod
    def score(self, problem: Problem, allocation: Allocation) -> int:
        """Return the cost of the whole allocation, running jobs included: the one definition."""

    @abstractmethod
    def delta(self, state: State, move: Move) -> int:
        """Return exactly ``score(after) - score(before)`` without changing ``state``."""

    @abstractmethod
    def worst(self, problem: Problem) -> int:
        """Return a constant of the round that no allocation's score exceeds; 0: the cost cannot count."""

    @abstractmethod
    def add_to(self, builder: ModelBuilder, variables: Variables) -> Expression:
        """Add columns and rows as needed, and return the score, or what never exceeds it, as an expression."""
