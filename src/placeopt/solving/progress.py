"""News from a round, for the caller's ``on_progress``."""

from __future__ import annotations

from dataclasses import dataclass

from placeopt.solving.bounds import relative_gap


@dataclass(frozen=True)
class Progress:
    """
    News from a round.

    Attributes
    ----------
    seconds
        Since the call.
    stage
        The stage at work.
    value, value_bound
        Value placed, and its bound; None where unknown.
    cost, cost_bound
        The same of the cost level, once it is being solved.
    """

    seconds: float
    stage: str
    value: int | None
    value_bound: int | None
    cost: int | None = None
    cost_bound: int | None = None

    @property
    def gap(self) -> float | None:
        """Relative gap of the first level that is not proven."""
        gap = relative_gap(self.value, self.value_bound)
        return relative_gap(self.cost, self.cost_bound) if gap == 0 and self.cost is not None else gap
