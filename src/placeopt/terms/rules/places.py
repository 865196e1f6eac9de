"""Rule: what jobs take together of a domain, of the cluster, or of a node beside room held for other jobs."""

from __future__ import annotations

import numpy as np

from placeopt.linear import ModelBuilder
from placeopt.problem import Placement, State
from placeopt.terms.standing import add_limits
from placeopt.terms.variables import Variables


class PlaceAmounts:
    """Named amounts of domains and of the cluster, such as power and licences, and holds that some jobs may use."""

    name = "places"

    def fits(self, state: State, job: int, placement: Placement) -> bool:
        """Return whether every place has what the placement takes of it."""
        del job
        for place in state.problem.places:
            need = place.taken(state.problem, placement)
            if need.any() and bool((need > place.room(state))[need > 0].any()):
                return False
        return True

    def add_to(self, builder: ModelBuilder, variables: Variables) -> None:
        """One row per place and resource that can bind at all."""
        v, options = variables, variables.problem.options
        if not v.problem.places:
            return
        option, everything = v.bundle_option, State(v.problem)
        need = (options.demand * options.bundle_workers[:, None])[option]  # (B, R)
        new = v.starts_new[v.bundle_start]
        for place in v.problem.places:
            inside = np.isin(v.bundle_node, place.nodes) & place.counted[options.job_class[option]]
            room, excess = place.room(v.state), np.maximum(-place.room(everything), 0)
            for r in np.flatnonzero(need[inside].any(axis=0)).tolist():
                mine = np.flatnonzero(inside & (need[:, r] > 0))
                row = np.zeros(len(mine), dtype=np.int64)
                add_limits(builder, row, v.bundle[mine], need[mine, r], new[mine], room[[r]], excess[[r]])
