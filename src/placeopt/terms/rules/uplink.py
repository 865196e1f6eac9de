"""Rule: bandwidth of the uplinks of machines and network domains, by the hose model."""

from __future__ import annotations

import numpy as np

from placeopt.errors import Unsupported
from placeopt.linear import ModelBuilder
from placeopt.problem import UNLIMITED, BoolArray, IntArray, Placement, State, hose_loads
from placeopt.terms.linearized_costs import unary_digits
from placeopt.terms.standing import add_limits, link_room
from placeopt.terms.variables import Variables


class Uplink:
    """
    A job with k workers, k_in of them inside a domain, loads its uplink with ``min(k_in, k - k_in)`` x its bandwidth.

    GPU jobs may use one part of a link, CPU jobs another (SODA V-E: 75 and 25 %).
    """

    name = "uplink"

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

        Raises
        ------
        Unsupported
            If an option that loads a limited link was folded with others into one unit.
        """
        v, problem = variables, variables.problem
        talks = (problem.options.network_mbps > 0) & (problem.options.workers > 1) & (problem.options.bundles > 1)
        starts = np.flatnonzero(talks[v.start_option])
        if not len(starts):
            return
        for links, load, excess, members in (
            (problem.machine_link_mbps, v.state.machine_load, v.excess.machine_link, _machines(v)),
            (problem.domain_link_mbps, v.state.domain_load, v.excess.domain_link, _domains(v)),
        ):
            free = link_room(problem, links, load)
            limited = {at: bundles for at, bundles in members.items() if links[at] < UNLIMITED}
            for kind in (0, 1):
                mine = [s for s in starts if (problem.options.gpus[v.start_option[s]] == 0) == bool(kind)]
                sums: list[tuple[IntArray, int]] = []
                loads: list[tuple[int, int, IntArray]] = []
                for s in mine:
                    self._loads_of_start(v, int(s), limited, sums, loads)
                rows: dict[int, list[tuple[IntArray, IntArray, BoolArray]]] = {}
                for (at, start, amounts), digits in zip(loads, unary_digits(builder, sums), strict=True):
                    rows.setdefault(at, []).append((digits, amounts, np.repeat(v.starts_new[start], len(digits))))
                for at, parts in rows.items():
                    columns, amounts, new = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
                    row, room, more = np.zeros_like(columns), free[[at], kind], excess[[at], kind]
                    add_limits(builder, row, columns, amounts, new, room, more)

    def _loads_of_start(
        self,
        v: Variables,
        s: int,
        members: dict[int, IntArray],
        sums: list[tuple[IntArray, int]],
        loads: list[tuple[int, int, IntArray]],
    ) -> None:
        """List the start's workers below every limited uplink, and the load that each further one of them brings."""
        if len(v.unit_jobs[v.start_unit[s]]) > 1:
            raise Unsupported("uplink: jobs that load uplinks cannot be counted together; use method 'assignment'")
        option = int(v.start_option[s])
        k, mbps = int(v.problem.options.workers[option]), int(v.problem.options.network_mbps[option])
        i = np.arange(k + 1)
        steps = np.diff(np.minimum(i, k - i)) * mbps
        for at, bundles in members.items():
            mine = bundles[v.bundle_start[bundles] == s]
            if len(mine):
                sums.append((v.bundle[mine], k))
                loads.append((at, s, steps))


def _machines(v: Variables) -> dict[int, IntArray]:
    """Bundles (positions) by node."""
    order = np.argsort(v.bundle_node, kind="stable")
    nodes, first = np.unique(v.bundle_node[order], return_index=True)
    return dict(zip((int(n) for n in nodes), np.split(order, first[1:]), strict=True)) if len(nodes) else {}


def _domains(v: Variables) -> dict[int, IntArray]:
    """Bundles (positions) by each domain above their node."""
    inside: dict[int, list[IntArray]] = {}
    for node, bundles in _machines(v).items():
        for domain in v.problem.topology.node_ancestors(node):
            inside.setdefault(domain, []).append(bundles)
    return {domain: np.concatenate(parts) for domain, parts in inside.items()}
