"""What holds for a cost that states nothing else: one form, exact, blind to single GPUs, unknown to relaxations."""

from __future__ import annotations

from placeopt.model import Policy
from placeopt.problem import IntArray, Problem
from placeopt.terms.protocols import Form


class CostDefaults:
    """Base of the costs. Each answer is the safe or the common one; see `placeopt.terms.protocols.Cost`."""

    name: str
    default_weight = 0
    never_lowered_by_starts = False

    def selected_by(self, policy: Policy) -> bool:
        """Return True: the cost has one form."""
        del policy
        return True

    def gpu_classes(self, problem: Problem) -> IntArray | None:
        """Return None: all GPUs of a node and type are interchangeable."""
        del problem
        return None

    def forbids_folding(self, problem: Problem, option: int) -> bool:
        """Return False: jobs of a class are interchangeable."""
        del problem, option
        return False

    def form(self, problem: Problem) -> Form:
        """Return ``exact``."""
        del problem
        return "exact"

    def omitted_by_cost_relaxation(self, problem: Problem) -> str | None:
        """Return the name: the relaxation charges nothing for the cost."""
        del problem
        return f"the cost {self.name!r}"

    def unsupported_by_columns(self, problem: Problem) -> str | None:
        """Return that columns have no price for the cost."""
        del problem
        return f"arrangements do not know the cost {self.name!r}"
