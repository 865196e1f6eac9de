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
        """Shape (G,): GPUs of one node with equal numbers are interchangeable; None: all GPUs of a node are."""
        ...

    def forbids_folding(self, problem: Problem, option: int) -> bool:
        """Return whether each job of this option needs columns of its own, instead of being counted with its class."""
        ...


class Cost(ABC):
    """
    What is good: an integer, the lower the better.

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

    @property
    def omitted_by_cost_relaxation(self) -> str | None:
        """What ``formulations/cost_relaxation`` leaves out of the score, in words; None if nothing."""
        return f"the cost {self.name!r}"

    @property
    def unsupported_by_columns(self) -> str | None:
        """Why columns of ``formulations/branch_and_price`` cannot charge the cost; None if they can."""
        return f"branch and price does not support the cost {self.name!r}"

    def selected_by(self, policy: Policy) -> bool:
        """
        Return whether this is the form of the cost that the policy names; True for a cost of one form.

        Parameters
        ----------
        policy
            The policy of the round.

        Returns
        -------
        bool
            Whether the cost counts under the policy, its weight aside.
        """
        del policy
        return True

    def gpu_classes(self, problem: Problem) -> IntArray | None:
        """
        Return which GPUs formulations may fold; None, the default: all GPUs of a node and type.

        Parameters
        ----------
        problem
            The compiled round.

        Returns
        -------
        IntArray or None
            Shape (G,): GPUs of one node with equal numbers are interchangeable.
        """
        del problem
        return None

    def forbids_folding(self, problem: Problem, option: int) -> bool:
        """
        Return whether each job of this option needs columns of its own, instead of being counted with its class.

        Parameters
        ----------
        problem
            The compiled round.
        option
            Number of an option.

        Returns
        -------
        bool
            False by default.
        """
        del problem, option
        return False

    def form(self, problem: Problem) -> Form:
        """
        Return whether ``add_to`` is exact for this problem.

        Parameters
        ----------
        problem
            The compiled round.

        Returns
        -------
        Form
            ``exact``, or ``bound``: never above the score.
        """
        del problem
        return "exact"

    @abstractmethod
    def score(self, problem: Problem, allocation: Allocation) -> int:
        """
        Return the cost of the whole allocation: the one definition.

        Parameters
        ----------
        problem
            The compiled round.
        allocation
            A placement or None for every job.

        Returns
        -------
        int
            In raw units of the cost, at least 0; the lower the better.
        """

    @abstractmethod
    def delta(self, state: State, move: Move) -> int:
        """
        Return exactly ``score(after) - score(before)`` without changing ``state``.

        Parameters
        ----------
        state
            The allocation before.
        move
            A job and its new placement.

        Returns
        -------
        int
            In raw units of the cost.
        """

    @abstractmethod
    def worst(self, problem: Problem) -> int:
        """
        Return a constant of the instance that no allocation's score exceeds (0: the term cannot cost anything).

        Parameters
        ----------
        problem
            The compiled round.

        Returns
        -------
        int
            In raw units of the cost.
        """

    @abstractmethod
    def add_to(self, builder: ModelBuilder, variables: Variables) -> Expression:
        """
        Add columns and rows as needed and return the cost, or a lower bound on it, as an expression.

        Parameters
        ----------
        builder
            The model under construction.
        variables
            Columns of starts, bundles and grants.

        Returns
        -------
        Expression
            Columns with integer coefficients, and a constant, in raw units of the cost.
        """
