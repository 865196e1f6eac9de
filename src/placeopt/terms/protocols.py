"""What a cost and a rule must state. One file holds one of them; common tests find every new one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Sequence
from typing import Literal, Protocol

from placeopt.linear import ModelBuilder
from placeopt.model import Policy, Record
from placeopt.problem import Allocation, IntArray, Move, Placement, Problem, State
from placeopt.problem.tree import Tree
from placeopt.terms.variables import Variables

Form = Literal["exact", "bound"]
"""Whether the linear form equals the score for every placement, or only never exceeds it."""

Expression = tuple[IntArray, IntArray, int]
"""Columns, coefficients and a constant: ``constant + sum coefficients * columns``."""


class Rule(Protocol):
    """What is allowed."""

    def fits(self, state: State, job: int, placement: Placement) -> bool:
        """Return whether a job that is not placed in ``state`` may be put to ``placement``."""
        ...

    def add_to(self, builder: ModelBuilder, variables: Variables) -> None:
        """Add the rows that allow exactly what ``fits`` allows."""
        ...


class Part:
    """
    What the score depends on that a move can change: its job, that job's tree, the nodes and GPUs before and after.

    Without a move everything there is.
    """

    def __init__(self, state: State, move: Move | None = None) -> None:
        problem = state.problem
        self.is_all = move is None
        self.jobs: Collection[int]
        self.nodes: Collection[int]
        self.gpus: Collection[int]
        self.trees: Sequence[Tree] = problem.trees
        if move is None:
            self.jobs = [job for job, held in enumerate(state.placements) if held is not None]
            self.nodes, self.gpus = range(problem.num_nodes), range(problem.num_gpus)
        else:
            held = [placement for placement in (state.placements[move.job], move.placement) if placement is not None]
            self.jobs, self.trees = (move.job,), [problem.tree_of[move.job]] if move.job in problem.tree_of else []
            self.nodes, self.gpus = {n for one in held for n in one.nodes}, {g for one in held for g in one.gpus}


class Cost(ABC):
    """
    What is good: an integer of at least 0 in raw units of the cost, the lower the better.

    What a cost does not state has the safe or the common answer: one form, exact, blind to single GPUs, unknown to
    relaxations.
    """

    name: str
    """Key of ``policy.weights``, of ``policy.costs`` if it has parameters, and of a plan's ``costs``."""
    unit: str
    parameters: type[Record] | None = None
    """Record of what it alone depends on, with a default for each field."""
    never_lowered_by_starts = False
    """Whether no start lowers the score, so that the score of the running jobs alone bounds it from below."""

    def selected_by(self, policy: Policy) -> bool:
        """Return whether this is the form of the cost that the policy names; True for a cost of one form."""
        del policy
        return True

    def gpu_classes(self, problem: Problem) -> IntArray | None:
        """Shape (G,): GPUs of one node with equal numbers are interchangeable; None: all of a node and type are."""
        del problem
        return None

    def forbids_folding(self, problem: Problem, option: int) -> bool:
        """Return whether each job of this option needs columns of its own, instead of being counted with its class."""
        del problem, option
        return False

    def form(self, problem: Problem) -> Form:
        """Return whether ``add_to`` equals the score in this round, which it does by default, or never exceeds it."""
        del problem
        return "exact"

    def score(self, problem: Problem, allocation: Allocation) -> int:
        """Return the cost of the whole allocation, running jobs included."""
        state = State(problem, allocation)
        return self.of(state, Part(state))

    def delta(self, state: State, move: Move) -> int:
        """Return exactly ``score(after) - score(before)``; ``state`` is as before in the end."""
        part = Part(state, move)
        before = self.of(state, part)
        undo = state.apply(move)
        after = self.of(state, part)
        state.apply(undo)
        return after - before

    @abstractmethod
    def of(self, state: State, part: Part) -> int:
        """Return what a part costs, and maybe more that its move cannot change: the one definition."""

    @abstractmethod
    def worst(self, problem: Problem) -> int:
        """Return a constant of the round that no allocation's score exceeds; 0: the cost cannot count."""

    @abstractmethod
    def add_to(self, builder: ModelBuilder, variables: Variables) -> Expression:
        """Add columns and rows as needed, and return the score, or what never exceeds it, as an expression."""
