"""
How workers can lie over nodes and network domains: every way at once, exactly, without a solver.

One job in fixed surroundings is small: a node takes some number of workers, its uplink and those of the domains above
it bound how they divide, splits count the domains in use. Going up the tree of domains it is enough to compute, for
each domain, which numbers of workers it can hold with which numbers of domains in use below. The numbers of workers are
the bits of a Python integer, so a domain of hundreds of nodes is merged in microseconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from placeopt.deadline import FOREVER, Deadline
from placeopt.feasibility.free_capacity import FreeCapacity
from placeopt.feasibility.requirement import Requirement
from placeopt.problem import UNLIMITED, IntArray

Used = tuple[int, ...]
"""Domains in use so far, one number a split."""

SizesByUse = dict[Used, int]
"""Domains in use -> numbers of workers that can be had with them: bit i is set if i workers can."""

NETWORK = -1


@dataclass
class _Part:
    """What hangs on a vertex: a pile of alike nodes, a single node, or a domain."""

    table: SizesByUse
    nodes: tuple[int, ...] = ()
    domain: int = NETWORK
    before: SizesByUse = field(default_factory=dict)


class WorkerDistribution:
    """
    All ways to lay ``workers`` workers; raises ``OutOfTime`` at the deadline.

    ``requirement`` states single node, splits and bandwidth; a split that states its workers takes ``workers /
    domains``. ``per_node``, (N,), are the most workers that each node takes (``FreeCapacity.workers``).
    ``most_domains``: level -> most domains in use, instead of the splits' own number.
    """

    def __init__(
        self,
        free_capacity: FreeCapacity,
        requirement: Requirement,
        workers: int,
        per_node: IntArray,
        *,
        most_domains: dict[str, int] | None = None,
        deadline: Deadline = FOREVER,
    ) -> None:
        self._free_capacity, self._requirement, self._workers, self._deadline = (
            free_capacity,
            requirement,
            workers,
            deadline,
        )
        self._full = (1 << (workers + 1)) - 1
        self._nothing: Used = (0,) * len(requirement.splits)
        self._caps = tuple((most_domains or {}).get(split.level, split.domains) for split in requirement.splits)
        self._parts: dict[int, list[_Part]] = {}
        self._most = np.minimum(per_node, workers)
        for split in requirement.splits:
            self._most = np.where(free_capacity.domains(split.level) >= 0, self._most, 0)
        self._table = self._solve()

    @property
    def fits(self) -> bool:
        """Whether there is a way with exactly the domains that the splits say."""
        return bool(self._table.get(tuple(split.domains for split in self._requirement.splits), 0) >> self._workers & 1)

    def domains_possible(self, level: str) -> list[int]:
        """Numbers of domains of ``level``, ascending, with which there is a way, all other splits kept."""
        possible = []
        for used, sizes in self._table.items():
            here = {u for u, split in zip(used, self._requirement.splits, strict=True) if split.level == level}
            others = all(
                u == split.domains
                for u, split in zip(used, self._requirement.splits, strict=True)
                if split.level != level
            )
            if others and len(here) == 1 and sizes >> self._workers & 1:
                possible.append(here.pop())
        return sorted(possible)

    def nodes(self) -> dict[int, int]:
        """Return node -> workers of one way; only where it ``fits``."""
        out: dict[int, int] = {}
        open_ = [(NETWORK, tuple(split.domains for split in self._requirement.splits), self._workers)]
        while open_:
            vertex, used, workers = open_.pop()
            if vertex != NETWORK and workers:
                used = _minus(used, self._counted(vertex))
            for part in reversed(self._parts.get(vertex, [])):
                part_used, part_workers = _share(part, used, workers)
                used, workers = _minus(used, part_used), workers - part_workers
                if part.domain != NETWORK:
                    open_.append((part.domain, part_used, part_workers))
                for node in part.nodes:
                    taken = min(part_workers, int(self._most[node]))
                    part_workers -= taken
                    if taken:
                        out[node] = taken
        return dict(sorted(out.items()))

    def _solve(self) -> SizesByUse:
        k = self._workers
        if any(split.workers is not None and k % split.domains for split in self._requirement.splits):
            return {}
        topology = self._free_capacity.problem.topology
        self._add_nodes()
        for domain in range(len(topology.domain_parent) - 1, -1, -1):  # parents stand first
            parts = self._parts.get(domain)
            if parts:
                table = self._close(domain, self._merged(parts))
                self._parts.setdefault(int(topology.domain_parent[domain]), []).append(_Part(table, domain=domain))
        return self._merged(self._parts.get(NETWORK, []))

    def _add_nodes(self) -> None:
        """Hang the nodes below their domains: one by one where they differ, else piled up."""
        requirement, k = self._requirement, self._workers
        node_domain = self._free_capacity.problem.topology.node_domain
        at_node = tuple(int(split.level == "node") for split in requirement.splits)
        allowed = self._sizes_at("node")
        piles: dict[int, list[int]] = {}
        for node in sorted(np.flatnonzero(self._most).tolist(), key=lambda n: -int(self._most[n])):
            most, at = int(self._most[node]), int(node_domain[node])
            sizes = (1 << (most + 1)) - 1
            linked = sizes & self._link(int(self._free_capacity.machine_room[node, requirement.link_part]))
            if requirement.single_node:
                linked = 1 | (linked & 1 << k)
            if not any(at_node) and linked == sizes:
                piles.setdefault(at, []).append(node)
                continue
            linked &= allowed
            table = {self._nothing: linked}
            if any(at_node):
                table = {self._nothing: 1, at_node: linked & ~1}
            self._parts.setdefault(at, []).append(_Part(table, (node,)))
        for at, nodes in piles.items():
            most = min(k, int(self._most[nodes].sum()))
            self._parts.setdefault(at, []).append(_Part({self._nothing: (1 << (most + 1)) - 1}, tuple(nodes)))

    def _merged(self, parts: list[_Part]) -> SizesByUse:
        table: SizesByUse = {self._nothing: 1}
        for part in parts:
            self._deadline.check("ways to lie were counted")
            part.before = table
            merged: SizesByUse = {}
            for used, sizes in table.items():
                for more, more_sizes in part.table.items():
                    both = tuple(a + b for a, b in zip(used, more, strict=True))
                    if all(n <= most for n, most in zip(both, self._caps, strict=True)):
                        total = _sums(sizes, more_sizes) & self._full
                        if total:
                            merged[both] = merged.get(both, 0) | total
            table = merged
        return table

    def _close(self, domain: int, table: SizesByUse) -> SizesByUse:
        """Apply the constraints on the domain as a whole: its uplink, and that it counts once it is in use."""
        counted = self._counted(domain)
        allowed = self._link(int(self._free_capacity.domain_room[domain, self._requirement.link_part]))
        allowed &= self._sizes_at(self._free_capacity.problem.topology.domain_level[domain])
        out: SizesByUse = {}
        for used, sizes in table.items():
            if sizes & 1:
                out[used] = out.get(used, 0) | 1
            after = tuple(a + b for a, b in zip(used, counted, strict=True))
            if sizes & allowed & ~1 and all(n <= most for n, most in zip(after, self._caps, strict=True)):
                out[after] = out.get(after, 0) | (sizes & allowed & ~1)
        return out

    def _counted(self, domain: int) -> Used:
        level = self._free_capacity.problem.topology.domain_level[domain]
        return tuple(int(split.level == level) for split in self._requirement.splits)

    def _sizes_at(self, level: str) -> int:
        """Numbers of workers that one domain of ``level`` may hold by the splits that state them."""
        sizes = self._full
        for split in self._requirement.splits:
            if split.level == level and split.workers is not None:
                sizes &= 1 | 1 << (self._workers // split.domains)
        return sizes

    def _link(self, free_mbps: int) -> int:
        """Numbers of workers below an uplink: min(k_in, k - k_in) x bandwidth must not exceed its free_mbps."""
        k, each = self._workers, self._requirement.network_mbps
        if not each or free_mbps >= UNLIMITED or k < 2:
            return self._full
        few = min(max(free_mbps, 0) // each, k)
        low = (1 << (few + 1)) - 1
        return (low | low << (k - few)) & self._full


def _sums(minuend: int, other: int) -> int:
    """Bits of all sums of a bit of ``minuend`` and a bit of ``other``."""
    out = 0
    while other:
        first = (other & -other).bit_length() - 1
        run = other >> first
        length = (~run & (run + 1)).bit_length() - 1  # ones in a row
        out |= _smeared(minuend, length - 1) << first
        other = (run >> length) << (first + length)
    return out


def _smeared(sizes: int, width: int) -> int:
    """Bits of ``sizes`` moved up by 0, 1, ..., ``width``."""
    done = 0
    while done < width:
        step = min(done + 1, width - done)
        sizes |= sizes << step
        done += step
    return sizes


def _minus(minuend: Used, other: Used) -> Used:
    return tuple(a - b for a, b in zip(minuend, other, strict=True))


def _share(part: _Part, used: Used, workers: int) -> tuple[Used, int]:
    """What the part holds of a total that it and the parts before it can make: as much as possible."""
    for more, sizes in part.table.items():
        before = part.before.get(_minus(used, more), 0)
        for taken in range(min(workers, sizes.bit_length() - 1), -1, -1):
            if sizes >> taken & 1 and before >> (workers - taken) & 1:
                return more, taken
    raise ValueError(f"no way to make {workers} workers; the tables contradict themselves")
