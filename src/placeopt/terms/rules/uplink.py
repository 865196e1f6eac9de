"""Rule: bandwidth of the uplinks of machines and network domains, by the hose model."""

from __future__ import annotations

import numpy as np

from placeopt.errors import Unsupported
from placeopt.linear import ModelBuilder
from placeopt.problem import UNLIMITED, Placement, State, hose_loads
from placeopt.terms.linearized_costs import unary_digits
from placeopt.terms.standing import add_limits
from placeopt.terms.variables import Variables


class Uplink:
    """
    A job with k workers, k_in of them inside a domain, loads its uplink with ``min(k_in, k - k_in)`` x its bandwidth.

    GPU jobs may use one part of a link, CPU jobs another (SODA V-E: 75 and 25 %).
    """

    def fits(self, state: State, job: int, placement: Placement) -> bool:
        """Return whether every uplink has room in the part of the job's kind."""
        del job
        problem, o = state.problem, placement.option
        if not problem.options.network_mbps[o] or len(placement.nodes) == 1:
            return True
        kind = 0 if problem.options.gpus[o] else 1
        return all(
            state.link_load.item(link, kind) + mbps <= problem.link_mbps.item(link, kind)
            for link, mbps in hose_loads(problem, placement).items()
        )

    def add_to(self, builder: ModelBuilder, variables: Variables) -> None:
        """
        The load is a function of k_in alone, so unary digits of k_in make it linear: exact.

        Raises ``Unsupported`` if an option that loads a limited link was folded with others into one unit.
        """
        v, problem, options = variables, variables.problem, variables.problem.options
        talks = (options.network_mbps > 0) & (options.workers > 1) & (options.bundles > 1)
        bundles = np.flatnonzero(talks[v.bundle_option])
        if (v.unit_size[v.start_unit[v.bundle_start[bundles]]] > 1).any():
            raise Unsupported("uplink: jobs that load uplinks cannot be counted together; use method 'assignment'")
        inside: dict[tuple[int, int], list[int]] = {}  # uplink and start: the bundles below it
        for bundle, s, node in zip(
            *(of[bundles].tolist() for of in (v.bundle, v.bundle_start, v.bundle_node)), strict=True
        ):
            for link in problem.topology.node_links(node):
                if problem.link_mbps[link, 0] < UNLIMITED:
                    inside.setdefault((link, s), []).append(bundle)
        if not inside:
            return
        link, start = np.array(list(inside), dtype=np.int64).T
        option = v.start_option[start]
        most = options.workers[option]
        digits = unary_digits(builder, list(zip(map(np.array, inside.values()), most.tolist(), strict=True)))
        i = np.concatenate([np.arange(k) for k in most.tolist()])  # each digit is a worker more below the uplink
        k, mbps = np.repeat(most, most), np.repeat(options.network_mbps[option], most)
        amounts = (np.minimum(i + 1, k - i - 1) - np.minimum(i, k - i)) * mbps
        limit, row = np.unique(np.repeat(2 * link + (options.gpus[option] == 0), most), return_inverse=True)
        room, excess = (of.ravel()[limit] for of in (problem.link_mbps - v.state.link_load, v.excess["link_load"]))
        new = np.repeat(v.starts_new[start], most)
        add_limits(builder, row, np.concatenate(digits), amounts, new, room, excess)
