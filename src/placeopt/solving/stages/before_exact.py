"""When searches run before an exact stage."""

from __future__ import annotations

from dataclasses import dataclass

from placeopt.solving import sizes
from placeopt.solving.context import SolveContext
from placeopt.solving.greedy_rule import has_many_fractions

SMALL_PRODUCT = 2_000
"""Waiting jobs x GPUs up to which an exact stage comes before the search: it proves such rounds sooner."""


@dataclass(frozen=True)
class BeforeExact:
    """
    The condition of a search before an exact stage of ``formulation``: the round is too large for that, or wide.

    It is wide from a size on from which the search helps before exact stages: where only value counts, or shares are
    many and the value is not proven yet, only if the best plan is far from the bound.
    """

    formulation: str

    def __call__(self, context: SolveContext) -> str | None:
        """Return why exact stages come first, None if the search does."""
        if reason := context.budget.stop_reason():
            return reason
        if not sizes.may_be_built(context, self.formulation):
            return None
        if sizes.product(context) <= SMALL_PRODUCT:
            return "the round is small enough for an exact stage"
        costs_bind = bool(context.weighted) and (context.value_proven or not has_many_fractions(context.problem))
        return None if costs_bind or context.is_far else "the best plan is near the bound"
