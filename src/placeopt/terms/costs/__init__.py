"""Costs: what is good, one file each, stated once and used by every formulation and heuristic."""

from __future__ import annotations

from placeopt.model import Policy
from placeopt.terms.costs.communication import Communication
from placeopt.terms.costs.fgd import Fgd
from placeopt.terms.costs.fragmentation import Fragmentation
from placeopt.terms.costs.horus import HorusCost
from placeopt.terms.costs.interference import Interference
from placeopt.terms.costs.prefer import PreferCost
from placeopt.terms.costs.relations import RelationsCost
from placeopt.terms.costs.resource import ResourceCost
from placeopt.terms.protocols import Cost

COSTS: tuple[Cost, ...] = (
    Communication(),
    Interference(),
    Fragmentation(),
    Fgd(),
    HorusCost(),
    ResourceCost(),
    PreferCost(),
    RelationsCost(),
)
"""A cost of several forms stands once per form; ``selected_by`` chooses one."""


def costs_of(policy: Policy) -> tuple[Cost, ...]:
    """Return all costs, each in the form that the policy names."""
    return tuple(cost for cost in COSTS if cost.selected_by(policy))
