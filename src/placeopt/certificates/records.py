"""The certificate: what a plan claims, and the proof of each claim that has one."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from placeopt.model import Policy
from placeopt.model.base import Id, LongName, Name, Record

Price = Annotated[int, Field(ge=0)]
"""In parts of the ``scale`` of its proof."""


class BundlePrice(Record):
    """What each bundle of some jobs pays in an option: all workers where these are on one node together, else each."""

    option: Id
    """Id of the option."""
    price: Price
    """What a bundle pays."""
    stays: bool = False
    """Whether the jobs run, and pay it for staying where they are; else they pay it for starting, or moving."""
    jobs: tuple[Id, ...]
    """The jobs."""


class NodePayment(Record):
    """What bundles can pay on one of some nodes at most."""

    nodes: tuple[Id, ...]
    """The nodes, which offer the same."""
    most: Price
    """The most that any bundles pay that are on such a node together."""
    amounts: dict[Name, Price] = Field(default_factory=dict)
    """What a node is paid for a unit of an amount; named resources are ``resource NAME``."""


class PriceProof(Record):
    """Prices that bound the value of every plan by weak duality."""

    scale: Price
    """What a unit of value is worth; of a proof of value, at least 1, the parts in which prices are stated."""
    prices: tuple[BundlePrice, ...]
    """Prices of bundles; what is not listed pays nothing."""
    nodes: tuple[NodePayment, ...]
    """What nodes are paid; those that are not listed are paid nothing."""
    cost: Price = 0
    """What a unit of cost costs; 0 where the proof is of value."""
    branches: tuple[Price, ...] = ()
    """What a job pays, or is paid, for starting, for each branch above, outermost first."""


class BranchProof(Record):
    """Two cases, one of which every plan is in."""

    jobs: tuple[Id, ...]
    """Waiting jobs."""
    option: Id | None = None
    """What is counted: bundles of the jobs in this option; None: the jobs that start."""
    most: Annotated[int, Field(ge=0)]
    """Where the cases part."""
    at_most: BranchProof | PriceProof
    """Proof for plans with so many at most."""
    more: BranchProof | PriceProof
    """Proof for plans with more."""


class ValueClaim(Record):
    """No plan is worth more than ``bound``."""

    claim: Literal["value"]
    """Kind of claim."""
    bound: int
    """In units of value."""
    proof: BranchProof | PriceProof | None = None
    """None: not certified."""
    why: LongName | None = None
    """Why it is not certified."""


class ConflictClaim(Record):
    """A waiting job has no room beside the running jobs that stay, whatever else starts."""

    claim: Literal["does not fit"]
    """Kind of claim."""
    job: Id
    """Name of the job."""
    proof: Literal["counting"] | None = None
    """
    ``counting``: In each of its options it has more bundles than nodes take together, or than the domains do that it
    may use; None: not certified.
    """
    why: LongName | None = None
    """Why it is not certified."""


class CostClaim(Record):
    """No plan that is worth ``value`` or more costs less than ``bound``."""

    claim: Literal["cost"]
    """Kind of claim."""
    bound: int
    """In units of the cost level."""
    value: int
    """What the plan is worth."""
    weights: dict[Name, Price]
    """Weights W of the costs that count, as the plan states them."""
    proof: Literal["never negative"] | BranchProof | PriceProof | None = None
    """``never negative``: no cost is below 0, and neither is ``bound`` above it; None: not certified."""
    why: LongName | None = None
    """Why it is not certified."""


class Certificate(Record):
    """The claims of a plan, each with a proof or with the reason why it has none."""

    document: Literal["certificate"] = "certificate"
    """What the file is."""
    instance: Name
    """Name of the round."""
    policy: Policy
    """The policy of the plan."""
    claims: tuple[ValueClaim | ConflictClaim | CostClaim, ...]
    """The claims."""
