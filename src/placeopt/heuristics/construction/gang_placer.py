"""Nodes for the bundles of one job, so that its GPUs are near each other: exact inside a domain, nearly so beyond."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placeopt.heuristics.candidates import Candidates
from placeopt.heuristics.construction.job_order import largest_domain
from placeopt.heuristics.node_selection import nodes_for_bundles
from placeopt.problem import IntArray
from placeopt.problem.growth import paths_inside, ways_out

FAR = 1 << 60
"""More than any cost; two of them still fit."""
SPARE = 8
"""Domains tried beyond those that are needed where no domain takes the whole job."""
DOMAINS = 4
"""Domains of a higher level tried, the tightest first."""


MOST_SIZES = 4
"""Sizes of bundles for which room is kept together, the largest."""


class GangPlacer:
    """
    Chooses nodes by cost and lost room for a job whose GPUs all communicate alike.

    A node with 8 idle GPUs that takes bundles of 4 loses room for a bundle of 8, if the round has such. For jobs that
    fill half of a domain each GPU of that counts as a pair of GPUs over the longest path.

    With k of the job's K GPUs below an edge, the edge costs its weight x k (K - k): so the cost of j bundles on a node
    depends on j alone, and the best nodes of a domain are found by dynamic programming over them, for every number of
    bundles at once and all domains side by side. The same then over the domains with most room.
    """

    def __init__(self, candidates: Candidates, weight: int) -> None:
        self.candidates, self._problem = candidates, candidates.problem
        self._weight = weight
        topology = self._problem.topology
        self._inside = paths_inside(topology)
        options = self._problem.options
        whole = (options.bundle_gpus > 1) & (options.milli == 1000)
        self._sizes = np.unique(options.bundle_gpus[whole])[::-1][:MOST_SIZES].tolist()
        self._domain_gpus = largest_domain(self._problem)
        self._pair = weight * topology.max_distance
        self._leave = ways_out(topology)

    def nodes(self, option: int) -> list[int] | None:
        """Return one node a bundle, or None where no way is found."""
        problem, options = self._problem, self._problem.options
        rooms, bundles = self.candidates.free_rooms(option), int(options.bundles[option])
        open_ = np.flatnonzero(rooms)
        if int(rooms[open_].sum()) < bundles:
            return None
        splits, lowest = options.splits[option], problem.topology.node_domain
        if any(not np.array_equal(problem.split_domain[split.level], lowest) for split in splits) or len(splits) > 1:
            return nodes_for_bundles(self.candidates, option)
        domains = self._domains(option, open_, rooms[open_], lowest[open_])
        if not splits:
            return self._anywhere(domains, bundles)
        parts = splits[0].domains
        if bundles % parts:
            return nodes_for_bundles(self.candidates, option)
        return domains.apart(parts, bundles // parts)

    def _domains(self, option: int, nodes: IntArray, rooms: IntArray, domain: IntArray) -> _Domains:
        """Work out what every number of bundles costs in every lowest domain."""
        options, topology = self._problem.options, self._problem.topology
        gpus, bundles = int(options.bundle_gpus[option]), int(options.bundles[option])
        total, k = gpus * bundles, gpus * np.arange(int(rooms.max()) + 1)
        machine = topology.node_machine[nodes]
        inside = self._inside[machine][:, np.minimum(k, self._inside.shape[1] - 1)]
        weight = self._weight * int(self._problem.class_communication[options.job_class[option]].weight)
        price = weight * (self._leave[nodes][:, None] * (k * (total - k)) + inside)  # (n, j)
        if options.milli[option] == 1000 and 2 * total >= self._domain_gpus:  # narrow ones fill what is left
            price = price + self._pair * self._broken(nodes, gpus, k)
        labels, row = np.unique(domain, return_inverse=True)
        uplink = np.where(labels >= 0, topology.domain_uplink[labels], 0) if len(topology.domain_uplink) else 0 * labels
        order = np.lexsort((-rooms, row))
        table = _Domains(labels, nodes[order], rooms[order], price[order], row[order], bundles)
        table.cross(weight * uplink, gpus)
        return table

    def _broken(self, nodes: IntArray, gpus: int, k: IntArray) -> IntArray:
        """Shape (n, j): GPUs of the room for larger bundles that j bundles of ``gpus``, ``k`` GPUs in all, break up."""
        problem = self._problem
        free = self.candidates.state.gpu_jobs == 0
        idle = np.bincount(problem.gpu_node[free], minlength=problem.num_nodes)[nodes][:, None]
        left, j = np.maximum(idle - k, 0), np.arange(len(k))
        out = np.zeros(left.shape, dtype=np.int64)
        for size in self._sizes:
            out += size * np.maximum(idle // size - left // size - j * (gpus // size), 0)
        return out

    def _anywhere(self, domains: _Domains, bundles: int) -> list[int] | None:
        alone = domains.whole()
        if alone is not None:
            return alone
        above, parent = domains.labels, self._problem.topology.domain_parent
        room = domains.room
        while (above >= 0).any():
            above = np.where(above >= 0, parent[above], -1)
            names, row = np.unique(above, return_inverse=True)
            rooms = np.bincount(row, weights=room).astype(np.int64)
            enough = np.flatnonzero(rooms >= bundles)
            tries = enough[np.argsort(rooms[enough], kind="stable")][:DOMAINS]
            by_domain = [domains.together(np.flatnonzero(row == d)) for d in tries]
            possible = [way for way in by_domain if way is not None]
            if possible:
                return min(possible, key=lambda way: way[0])[1]
            if len(names) == 1:
                break
        last = domains.together(np.arange(len(domains.labels)))
        return None if last is None else last[1]


@dataclass
class _Domains:
    """
    The cost of every number of bundles in each of D lowest domains, by dynamic programming over its nodes.

    ``nodes``, ``rooms``, ``price`` (n, j) and ``row`` are of the nodes, those of a domain side by side.
    """

    labels: IntArray
    nodes: IntArray
    rooms: IntArray
    price: IntArray
    row: IntArray
    bundles: int

    def __post_init__(self) -> None:
        """Fill the table ``cost``, (D, bundles + 1)."""
        size = len(self.labels)
        self.room: IntArray = np.bincount(self.row, weights=self.rooms, minlength=size).astype(np.int64)
        self._start = np.searchsorted(self.row, np.arange(size + 1))
        self.cost = np.full((size, self.bundles + 1), FAR, dtype=np.int64)
        self.cost[:, 0] = 0
        turn = np.arange(len(self.nodes)) - self._start[self.row]
        for p in range(int(turn.max(initial=-1)) + 1):
            at = np.flatnonzero(turn == p)
            d, before = self.row[at], self.cost[self.row[at]]
            best = before.copy()
            for j in range(1, min(int(self.rooms[at].max()), self.bundles) + 1):
                can = self.rooms[at] >= j
                better = before[can, :-j] + self.price[at[can], j][:, None]
                best[can, j:] = np.minimum(best[can, j:], better)
            self.cost[d] = np.minimum(best, FAR)

    def cross(self, uplink: IntArray, gpus: int) -> None:
        """Add what leaving the domain costs."""
        k = gpus * np.arange(self.bundles + 1)
        self._inner = self.cost
        self.cost = np.minimum(self.cost + uplink[:, None] * (k * (k[-1] - k)), FAR)

    def whole(self) -> list[int] | None:
        """Nodes in the domain that takes the whole job at least cost, then in the tightest one; None without one."""
        cost = self.cost[:, self.bundles]
        able = np.flatnonzero(cost < FAR)
        if not len(able):
            return None
        return self._nodes(int(able[np.lexsort((self.room[able], cost[able]))[0]]), self.bundles)

    def apart(self, parts: int, each: int) -> list[int] | None:
        """Nodes in ``parts`` domains, ``each`` bundles in each."""
        cost = self.cost[:, each]
        able = np.flatnonzero((cost < FAR) & (self.labels >= 0))
        if len(able) < parts:
            return None
        chosen = able[np.lexsort((self.room[able], cost[able]))[:parts]]
        return [node for d in chosen.tolist() for node in self._nodes(d, each)]

    def together(self, among: IntArray) -> tuple[int, list[int]] | None:
        """Cost and nodes in several of these domains: those with most room, and the tightest that take the rest."""
        if int(self.room[among].sum()) < self.bundles:
            return None
        order = among[np.argsort(-self.room[among], kind="stable")]
        needed = int(np.searchsorted(np.cumsum(self.room[order]), self.bundles)) + 1
        tried = np.concatenate([order[: needed + SPARE], order[needed + SPARE :][::-1][:SPARE]])
        size = self.bundles + 1
        best = np.full(size, FAR, dtype=np.int64)
        best[0] = 0
        shift = np.arange(size)[:, None] - np.arange(size)[None, :]  # [i, k] = i - k
        taken: list[IntArray] = []
        for d in tried.tolist():
            ways = np.where(shift >= 0, best[np.maximum(shift, 0)] + self.cost[d][None, :], FAR)
            taken.append(ways.argmin(axis=1))
            best = np.minimum(ways.min(axis=1), FAR)
        if best[-1] >= FAR:
            return None
        left = self.bundles
        out: list[int] = []
        for d, k in zip(tried[::-1].tolist(), taken[::-1], strict=True):
            part = int(k[left])
            if part:
                out.extend(self._nodes(d, part))
                left -= part
        return int(best[-1]), out

    def _nodes(self, d: int, count: int) -> list[int]:
        """Nodes of one domain for ``count`` bundles."""
        first, last = int(self._start[d]), int(self._start[d + 1])
        best = np.full(count + 1, FAR, dtype=np.int64)
        best[0] = 0
        taken: list[IntArray] = []
        for i in range(first, last):
            most = min(int(self.rooms[i]), count)
            ways = np.full((most + 1, count + 1), FAR, dtype=np.int64)
            for j in range(most + 1):
                ways[j, j:] = best[: count + 1 - j] + self.price[i, j]
            taken.append(ways.argmin(axis=0))
            best = np.minimum(ways.min(axis=0), FAR)
        left = count
        out: list[int] = []
        for i, chosen in zip(range(last - 1, first - 1, -1), taken[::-1], strict=True):
            part = int(chosen[left])
            out.extend([int(self.nodes[i])] * part)
            left -= part
        return out
