"""A row that every plan keeps: at some prices, jobs that start pay no more than fillings of all nodes can be paid."""

from __future__ import annotations

from dataclasses import dataclass

from placeopt.linear import NO_LOWER, ModelBuilder
from placeopt.problem import IntArray

FINENESS = 1000
"""Parts of a unit of value in which a cut is stated."""


@dataclass(frozen=True, eq=False)
class CapacityCut:
    """
    What fillings of nodes say of room, in one row: it knows that CPU is short on one node and GPUs on another.

    The same prices bound the value (`fillings.Master.value_bound`). Added to a relaxation without nodes, the row makes
    plans that are worth nearly as much as that bound as rare as they are.
    """

    pays: IntArray  # (O,) what a job pays in each option, rounded down
    most: int  # what all nodes can be paid, rounded up; both in 1 / FINENESS of a value

    @classmethod
    def of_prices(cls, price: IntArray, best: IntArray, count: IntArray, scale: int) -> CapacityCut:
        """
        Return the cut.

        - ``price``: Shape (O,): what all bundles of a job pay in each option, in 1 / ``scale`` of a value.
        - ``best``: Shape (S,): no filling of a state of nodes pays more, in the same parts.
        - ``count``: Shape (S,): nodes in each state.
        """
        unit = max(scale // FINENESS, 1)
        total = sum(each * nodes for each, nodes in zip(best.tolist(), count.tolist(), strict=True))
        return cls(price // unit, -(-total // unit))

    def add_to(self, builder: ModelBuilder, chosen: IntArray, option: IntArray) -> None:
        """Add the row: ``chosen`` are columns that count the jobs that start in each ``option``."""
        builder.add_row(chosen, self.pays[option], NO_LOWER, self.most)
