"""Costs: what is good, one file each, stated once and used by every formulation and heuristic."""

from __future__ import annotations

from placeopt.errors import BadArgument
from placeopt.model import Policy
from placeopt.model.costs import COST_KINDS, CostKind
from placeopt.terms.costs.communication import Communication
from placeopt.terms.costs.fgd import Fgd
from placeopt.terms.costs.fragmentation import Fragmentation
from placeopt.terms.costs.horus import HorusCost
from placeopt.terms.costs.interference import Interference
from placeopt.terms.costs.prefer import PreferCost
from placeopt.terms.costs.relations import RelationsCost
from placeopt.terms.costs.resource import ResourceCost
from placeopt.terms.protocols import Cost

COSTS: list[Cost] = []
"""A cost of several forms stands once per form; ``selected_by`` chooses one."""


def register_cost(*forms: Cost) -> None:
    """
    Let policies name a cost in ``weights`` from now on, in this process, and its parameters in ``costs``.

    Parameters
    ----------
    *forms
        The cost; several if a policy chooses one of them.

    Raises
    ------
    BadArgument
        If there is a cost of that name.
    """
    name = forms[0].name
    if any(cost.name == name for cost in COSTS):
        raise BadArgument(f"name: there is a cost {name!r} already; choose another name")
    COST_KINDS.setdefault(name, CostKind(parameters=forms[0].parameters))
    COSTS.extend(forms)


register_cost(Communication())
register_cost(Interference())
register_cost(Fragmentation(), Fgd())
register_cost(HorusCost())
register_cost(ResourceCost())
register_cost(PreferCost())
register_cost(RelationsCost())


def costs_of(policy: Policy) -> tuple[Cost, ...]:
    """Return all costs, each in the form that the policy names."""
    return tuple(cost for cost in COSTS if cost.selected_by(policy))
