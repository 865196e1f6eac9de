"""Rule: bandwidth of the uplinks of machines and network domains, by the hose model."""

from __future__ import annotations

import numpy as np

from placeopt.errors import Unsupported
from placeopt.linear import ModelBuilder
from placeopt.problem import UNLIMITED, Placement, State, hose_loads
from placeopt.terms.linearized_costs import unary_digits
from placeopt.terms.standing import add_limits, link_room
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
        for where, at, amount in hose_loads(problem, placement):
            load = (state.machine_load if where == "machine" else state.domain_load)[[at]]
            link = (problem.machine_link_mbps if where == "machine" else problem.domain_link_mbps)[[at]]
            if amount > link_room(problem, link, load)[0, kind]:
                return False
        return True

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
        where = list(
            zip(bundles.tolist(), v.bundle_start[bundles].tolist(), v.bundle_node[bundles].tolist(), strict=True)
        )
        for links, load, excess, domains in (
            (problem.machine_link_mbps, v.state.machine_load, v.excess["machine_load"], False),
            (problem.domain_link_mbps, v.state.domain_load, v.excess["domain_load"], True),
        ):
            inside: dict[tuple[int, int], list[int]] = {}  # uplink and start: the bundles below it
            for bundle, s, node in where:
                for at in problem.topology.node_ancestors(node) if domains else (node,):
                    if links[at] < UNLIMITED:
                        inside.setdefault((at, s), []).append(bundle)
            option = v.start_option[[s for _, s in inside]]
            sums = [(v.bundle[of], int(k)) for of, k in zip(inside.values(), options.workers[option], strict=True)]
            digits, most = unary_digits(builder, sums), np.array([k for _, k in sums], dtype=np.int64)
            if not inside:
                continue
            i = np.concatenate([np.arange(k) for k in most.tolist()])  # each digit is a worker more below the uplink
            k, mbps = np.repeat(most, most), np.repeat(options.network_mbps[option], most)
            amounts = (np.minimum(i + 1, k - i - 1) - np.minimum(i, k - i)) * mbps
            new = np.repeat(v.starts_new[[s for _, s in inside]], most)
            limit = 2 * np.array([at for at, _ in inside], dtype=np.int64) + (options.gpus[option] == 0)
            limit, row = np.unique(np.repeat(limit, most), return_inverse=True)
            room = link_room(problem, links, load).ravel()[limit]
            add_limits(builder, row, np.concatenate(digits), amounts, new, room, excess.ravel()[limit])
