"""Rule: CPU, memory, memory bandwidth and PCIe bandwidth of a node."""

from __future__ import annotations

from collections import Counter

import numpy as np

from placeopt.linear import ModelBuilder
from placeopt.problem import RESOURCES, Placement, State
from placeopt.terms.standing import add_limits
from placeopt.terms.variables import Variables


class NodeCapacity:
    """Horus eq. 5; bandwidths up to their usable part (SC'17 section 4.3, SODA V-E)."""

    name = "node_capacity"

    def fits(self, state: State, job: int, placement: Placement) -> bool:
        """Return whether every node has room for the workers that land there."""
        del job
        demand = state.problem.options.demand[placement.option].tolist()
        workers = Counter(placement.nodes)
        free = state.node_free[list(workers)].tolist()
        return all(
            each * count <= left or not each
            for row, count in zip(free, workers.values(), strict=True)
            for each, left in zip(demand, row, strict=True)
        )

    def add_to(self, builder: ModelBuilder, variables: Variables) -> None:
        """One row per node and resource that can bind at all."""
        v, options = variables, variables.problem.options
        need = (options.demand * options.bundle_workers[:, None])[v.bundle_option]  # (B, R)
        for r in range(len(RESOURCES)):
            uses = need[:, r] > 0
            nodes, row = np.unique(v.bundle_node[uses], return_inverse=True)
            starts = v.starts_new[v.bundle_start[uses]]
            free, excess = v.state.node_free[nodes, r], v.excess.node[nodes, r]
            add_limits(builder, row, v.bundle[uses], need[uses, r], starts, free, excess)
