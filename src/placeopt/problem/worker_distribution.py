"""
How workers can lie over nodes and network domains: every way at once, exactly, without a solver.

One job in fixed surroundings is small: a node takes some number of workers, its uplink and those of the domains above
it bound how they divide, splits say how many may be in a domain and how many domains are in use. Going up the tree of
domains it is enough to compute, for each domain, which numbers of workers it can hold with which counts of the splits
below. The numbers of workers are the bits of a Python integer, so a domain of hundreds of nodes is merged in
microseconds.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from placeopt.deadline import FOREVER, Deadline
from placeopt.model import Split, Spread
from placeopt.problem.arrays import IntArray
from placeopt.topology.cluster_topology import ClusterTopology

Counts = tuple[int, ...]
"""For each split that counts domains: those in use so far, or those with a part of a segment."""

SizesByCounts = dict[Counts, int]
"""Counts -> numbers of workers that can be had with them: bit i is set if i workers can."""

NETWORK = -1


@dataclass
class _Part:
    """What hangs on a vertex: a pile of alike nodes, a single node, or a domain."""

    table: SizesByCounts
    nodes: tuple[int, ...] = ()
    domain: int = NETWORK
    before: SizesByCounts = field(default_factory=dict)


@dataclass(frozen=True)
class Surroundings:
    """Where the workers of one job may lie: N nodes, D domains."""

    topology: ClusterTopology
    domain_of: Callable[[str], IntArray]
    """Returns for a level the domain of each node, (N,), -1 without."""
    splits: tuple[Split, ...]
    spread: tuple[Spread, ...] = ()
    eligible: Callable[[Spread], Collection[int]] = lambda _: ()
    """Returns the domains that ``skew_max`` compares with."""
    single_node: bool = False
    mbps: int = 0  # of one worker, on uplinks
    link_room: IntArray | None = None  # (N + D,) MB/s left of the uplinks of nodes and domains; None: not limited
    domain_takes: Mapping[int, int] = field(default_factory=dict)
    """Most workers in a domain, of those that limit them by amounts of their own."""

    @property
    def levels(self) -> set[str]:
        """Levels in whose domains all workers lie."""
        return {split.level for split in self.splits} | {one.level for one in self.spread}


class WorkerDistribution:
    """
    All ways to lay ``workers`` workers; raises ``OutOfTime`` at the deadline.

    ``per_node``, (N,), are the most workers that each node takes. A split that states its workers takes ``workers /
    domains``.
    """

    def __init__(self, around: Surroundings, workers: int, per_node: IntArray, *, deadline: Deadline = FOREVER) -> None:
        self._around, self._workers, self._deadline = around, workers, deadline
        self._full = (1 << (workers + 1)) - 1
        self._counting, self._breaking = around.splits, [one for one in around.spread if one.remainder == "smaller"]
        self._nothing: Counts = (0,) * (len(self._counting) + len(self._breaking))
        self._caps: Counts = (*(split.domains for split in self._counting), *[1] * len(self._breaking))
        self._most = np.minimum(per_node, workers)
        for level in around.levels:
            self._most = np.where(around.domain_of(level) >= 0, self._most, 0)
        self._floor: dict[Spread, int] = {}  # workers that each eligible domain has at least, by splits of a skew
        self._eligible = {s: frozenset(around.eligible(s)) for s in around.spread if s.skew_max is not None}
        self._parts: dict[int, list[_Part]] = {}
        self._table: SizesByCounts = {}
        for floors in product(*(self._floors(split) for split in self._eligible)):
            self._floor = dict(zip(self._eligible, floors, strict=True))
            self._table = self._solve()
            if self.fits:
                break

    def _floors(self, split: Spread) -> range:
        """Return what the eligible domain with the fewest workers may have."""
        eligible, domain = self._eligible[split], self._around.domain_of(split.level)
        used = set(domain[self._most > 0].tolist())
        return range(self._workers // len(eligible) + 1 if eligible and eligible <= used else 1)

    @property
    def fits(self) -> bool:
        """Whether there is a way with exactly the domains that the splits say."""
        return self._end() is not None

    def _end(self) -> Counts | None:
        """Return counts of the whole that all workers can be had with."""
        domains = tuple(split.domains for split in self._counting)
        ends = (counts for counts, sizes in self._table.items() if sizes >> self._workers & 1)
        return next((counts for counts in ends if counts[: len(domains)] == domains), None)

    def nodes(self) -> dict[int, int]:
        """Return node -> workers of one way; none where it does not fit."""
        end = self._end()
        out: dict[int, int] = {}
        open_ = [] if end is None else [(NETWORK, end, self._workers)]
        while open_:
            vertex, counts, workers = open_.pop()
            if vertex != NETWORK and workers:
                kinds = self._kinds(self._around.topology.domain_level[vertex])
                counts = _minus(counts, next(added for added, kind in kinds if kind >> workers & 1))
            for part in reversed(self._parts.get(vertex, [])):
                part_counts, part_workers = _share(part, counts, workers)
                counts, workers = _minus(counts, part_counts), workers - part_workers
                if part.domain != NETWORK:
                    open_.append((part.domain, part_counts, part_workers))
                for node in part.nodes:
                    taken = min(part_workers, int(self._most[node]))
                    part_workers -= taken
                    if taken:
                        out[node] = taken
        return dict(sorted(out.items()))

    def _solve(self) -> SizesByCounts:
        k, topology = self._workers, self._around.topology
        if any(split.workers is not None and k % split.domains for split in self._around.splits):
            return {}
        self._parts = {}
        self._add_nodes()
        for domain in range(len(topology.domain_parent) - 1, -1, -1):  # parents stand first
            parts = self._parts.get(domain)
            if parts:
                _fullest_last(parts)
                link = self._link(len(topology.node_domain) + domain)
                if domain in self._around.domain_takes:
                    link &= (1 << (self._around.domain_takes[domain] + 1)) - 1
                table = self._closed(topology.domain_level[domain], domain, self._merged(parts), link)
                self._parts.setdefault(int(topology.domain_parent[domain]), []).append(_Part(table, domain=domain))
        parts = self._parts.get(NETWORK, [])
        _fullest_last(parts)
        return self._merged(parts)

    def _add_nodes(self) -> None:
        """Hang the nodes below their domains: one by one where they differ, else piled up."""
        around, k = self._around, self._workers
        node_domain = around.topology.node_domain
        counted = "node" in around.levels
        piles: dict[int, list[int]] = {}
        for node in sorted(np.flatnonzero(self._most).tolist(), key=lambda n: -int(self._most[n])):
            most, at = int(self._most[node]), int(node_domain[node])
            sizes = (1 << (most + 1)) - 1
            linked = sizes & self._link(node)
            if around.single_node:
                linked = 1 | (linked & 1 << k)
            if not counted and linked == sizes:
                piles.setdefault(at, []).append(node)
            else:
                table = self._closed("node", node, {self._nothing: linked}, self._full)
                self._parts.setdefault(at, []).append(_Part(table, (node,)))
        for at, nodes in piles.items():
            most = min(k, int(self._most[nodes].sum()))
            self._parts.setdefault(at, []).append(_Part({self._nothing: (1 << (most + 1)) - 1}, tuple(nodes)))

    def _merged(self, parts: list[_Part]) -> SizesByCounts:
        table: SizesByCounts = {self._nothing: 1}
        for part in parts:
            self._deadline.check("ways to lie were counted")
            part.before = table
            merged: SizesByCounts = {}
            for counts, sizes in table.items():
                for more, more_sizes in part.table.items():
                    both = self._plus(counts, more)
                    if both is not None and (total := _sums(sizes, more_sizes) & self._full):
                        merged[both] = merged.get(both, 0) | total
            table = merged
        return table

    def _closed(self, level: str, domain: int, table: SizesByCounts, link: int) -> SizesByCounts:
        """Apply the constraints on a domain as a whole: its uplink, what splits admit, and what they count of it."""
        admitted = self._admitted(level, domain)
        out: SizesByCounts = {}
        for counts, sizes in table.items():
            if sizes & admitted & 1:
                out[counts] = out.get(counts, 0) | 1
            for added, kind in self._kinds(level):
                after, left = self._plus(counts, added), sizes & admitted & link & kind & ~1
                if left and after is not None:
                    out[after] = out.get(after, 0) | left
        return out

    def _plus(self, one: Counts, other: Counts) -> Counts | None:
        """Return the counts of two parts together; None if these are too many domains."""
        both = tuple(a + b for a, b in zip(one, other, strict=True))
        return both if all(map(operator.le, both, self._caps)) else None

    def _kinds(self, level: str) -> Iterable[tuple[Counts, int]]:
        """Yield what a domain of a level adds to the counts, with the numbers of workers that add so much."""
        used = [int(split.level == level) for split in self._counting]
        ways = []
        for split in self._breaking:
            whole = self._multiples(split.segment or 1)
            ways.append([(0, whole), (1, self._full & ~whole)] if split.level == level else [(0, self._full)])
        for chosen in product(*ways):
            kind = self._full
            for _, sizes in chosen:
                kind &= sizes
            yield (*used, *(count for count, _ in chosen)), kind

    def _multiples(self, size: int) -> int:
        """Numbers of workers that segments of a size make up."""
        return sum(1 << count for count in range(0, self._workers + 1, size))

    def _admitted(self, level: str, domain: int) -> int:
        """Numbers of workers that one domain of a level may hold by the splits."""
        sizes = self._full
        for split in self._around.splits:
            if split.level == level and split.workers is not None:
                sizes &= 1 | 1 << (self._workers // split.domains)
        for one in self._around.spread:
            if one.level != level:
                continue
            if one.workers_max is not None:
                sizes &= (1 << (one.workers_max + 1)) - 1
            if one.segment is not None and one.remainder == "refuse":
                sizes &= self._multiples(one.segment)
            if one.skew_max is not None:
                least = self._floor[one]
                sizes &= (1 << (least + one.skew_max + 1)) - 1
                if domain in self._eligible[one]:
                    sizes &= ~((1 << least) - 1)
        return sizes

    def _link(self, at: int) -> int:
        """Numbers of workers below an uplink: min(k_in, k - k_in) x bandwidth must not exceed what is free of it."""
        k, each, room = self._workers, self._around.mbps, self._around.link_room
        if room is None or not each or k < 2:
            return self._full
        few = min(max(int(room[at]), 0) // each, k)
        low = (1 << (few + 1)) - 1
        return (low | low << (k - few)) & self._full


def _fullest_last(parts: list[_Part]) -> None:
    """Sort the parts of a vertex: ways are laid from the last one on, and what has the least room is to be filled."""
    parts.sort(key=lambda part: -max((sizes.bit_length() for sizes in part.table.values()), default=0))


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


def _minus(minuend: Counts, other: Counts) -> Counts:
    return tuple(a - b for a, b in zip(minuend, other, strict=True))


def _share(part: _Part, counts: Counts, workers: int) -> tuple[Counts, int]:
    """What the part holds of a total that it and the parts before it can make: as much as possible."""
    best: tuple[Counts, int] | None = None
    for more, sizes in part.table.items():
        before = part.before.get(_minus(counts, more), 0)
        least = -1 if best is None else best[1]
        for taken in range(min(workers, sizes.bit_length() - 1), least, -1):
            if sizes >> taken & 1 and before >> (workers - taken) & 1:
                best = more, taken
                break
    if best is None:
        raise ValueError(f"no way to make {workers} workers; the tables contradict themselves")
    return best
