"""Pricing on a grid for each tier of states: nodes with little left are counted in finer units."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from placeopt.formulations.node_patterns.groups import BundleGroups, NodeStates
from placeopt.formulations.node_patterns.pricing import (
    CELLS,
    BestPatterns,
    PatternPricing,
    Rounding,
    binding_resources,
)
from placeopt.problem import IntArray

TIER_BITS = 2
"""
A tier's amounts of a resource lie within a factor of 2^2. With 2^1 there are twice as many tiers for the same bound;
with one tier the units are made for the largest node, and smaller demands count as nothing, or do not fit.
"""


class TieredPricing:
    """
    `PatternPricing` with a grid for each tier of states, instead of one for all.

    In a cluster that is nearly full most nodes have little left, and single ones everything. One grid for all has units
    made for the latter: rounded down, small demands need nothing, rounded up, they do not fit. With tiers rounding
    loses a part of what the node has.
    """

    def __init__(
        self,
        bundle_groups: BundleGroups,
        states: NodeStates,
        rounding: Rounding,
        check_time: Callable[[], None],
        cells: int = CELLS,
    ) -> None:
        """``cells``: those of each tier's grid, at most; ``check_time`` is called between tables."""
        self._states = len(states)
        free = states.free[:, binding_resources(states)]
        size = -(-np.frexp(free.astype(float))[1] // TIER_BITS)  # frexp: the number of binary digits
        _, tier = np.unique(size, axis=0, return_inverse=True)
        self._tiers: list[tuple[IntArray, PatternPricing]] = []
        for t in range(int(tier.max(initial=-1)) + 1):
            here = np.flatnonzero(tier.reshape(-1) == t)
            part = replace(
                states,
                nodes=tuple(states.nodes[s] for s in here.tolist()),
                **{name: getattr(states, name)[here] for name in ("count", "room", "free", "mask")},
            )
            self._tiers.append((here, PatternPricing(bundle_groups, part, rounding, check_time, cells)))
        free_of_charge = [pricing.free_of_charge for _, pricing in self._tiers]
        self.free_of_charge: IntArray = np.unique(np.concatenate([np.zeros(0, dtype=np.int64), *free_of_charge]))
        """Bundle groups that need nothing that some tier counts. Their price must be 0."""

    def price(self, pays: IntArray, *, patterns: bool = True) -> BestPatterns:
        """Return the best pattern of each state, as ``PatternPricing.price`` does."""
        out = BestPatterns(np.zeros(self._states, dtype=np.int64), np.zeros(self._states, dtype=np.int64), [])
        for here, pricing in self._tiers:
            best = pricing.price(pays, patterns=patterns)
            out.pays[here] = best.pays
            out.choice[here] = best.choice + len(out.patterns)
            out.patterns.extend(best.patterns)
        return out


def most_busy(pricing: TieredPricing | PatternPricing, bundle_groups: BundleGroups, states: NodeStates) -> IntArray:
    """
    Shape (N,): GPUs that bundles of a pattern hold of each node, at most; ``pricing`` rounds demands down.

    A GPU that two bundles share counts twice. Nodes where CPU or memory has run out leave GPUs idle in every plan.
    """
    pays = pricing.price(bundle_groups.units, patterns=False).pays
    most = np.zeros(states.num_nodes, dtype=np.int64)
    for nodes, held in zip(states.nodes, pays.tolist(), strict=True):
        most[nodes] = held
    return most
