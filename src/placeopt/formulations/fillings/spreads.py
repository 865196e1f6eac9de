"""Spreads: jobs that lie in several parts of one node, and what they leave of its parts to others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import combinations, islice, product
from math import comb, prod
from typing import NamedTuple

import numpy as np

from placeopt.errors import Unsupported
from placeopt.formulations.fillings.disturbance import Disturbance
from placeopt.formulations.fillings.groups import BundleGroups
from placeopt.formulations.fillings.parts import Nodes, Parts
from placeopt.problem import GPU_MILLI, IntArray, Problem

MOST_SPREADS = MOST_WAYS = 1 << 15
"""
Spreads of all states of nodes up to which they are listed; the same of the splits of a job over the parts of a node,
and of the sets of GPUs for one.
"""
MOST_HELD = 1 << 17
"""Numbers of GPUs that jobs of several parts take of each, of all states of nodes."""
TOO_MANY = "jobs can lie in too many ways over the sockets of nodes"
NEVER = -(1 << 58)
"""What cannot be; a few of them still fit into 64 bits."""

Crossing = tuple[int, tuple[int, ...]]
"""A bundle group, and how many of its GPUs lie in each part of the node."""
Ways = list[tuple[int, frozenset[int]]]
"""Sets of GPUs, each with the sum of the paths between them, the shortest first."""


class Spread(NamedTuple):
    """What a node of a state holds over several of its parts, what is left of each, and what that costs."""

    node: int
    crossings: tuple[Crossing, ...]
    units: tuple[int, ...]
    cost: int


class SpreadRows(NamedTuple):
    """S spreads of states of nodes, or of numbers of GPUs that they take; those of none come first, by state."""

    node: IntArray  # (S,)
    units: IntArray  # (S, parts) what is left of each part; -1 beyond the last
    beneath: IntArray  # (U,) the unit whose part a spread takes some of; a unit itself where none does


class Spreading:
    """What spreads are, and what they cost."""

    def __init__(
        self,
        problem: Problem,
        nodes: Nodes,
        parts: Parts,
        groups: BundleGroups,
        disturbance: Disturbance,
        path_weight: int,
        check_time: Callable[[], None],
    ) -> None:
        """
        Take what spreads are made of; ``check_time`` is called now and then, and may raise.

        Raises ``Unsupported`` where bundles of several shares of GPUs may lie in several parts.
        """
        self.nodes, self.parts, self.groups, self.disturbance = nodes, parts, groups, disturbance
        self._problem, self.check_time = problem, check_time
        self.traffic: list[int] = (path_weight * groups.traffic).tolist()
        self._known: dict[tuple[int, tuple[tuple[int, ...], ...], tuple[int, ...]], Ways] = {}
        several = np.array([len(units) > 1 for units in nodes.units], dtype=bool)
        if (nodes.able[several] & (groups.gpus > 1) & (groups.milli < GPU_MILLI)).any():
            raise Unsupported("bundles of several shares of GPUs may lie in several sockets")

    def wide(self, n: int) -> list[int]:
        """Bundle groups that may lie in several parts of a node of state n."""
        several = len(self.nodes.units[n]) > 1
        return np.flatnonzero(self.nodes.able[n] & (self.groups.gpus > 1)).tolist() if several else []

    def standing(self, n: int, held: tuple[int, ...]) -> int:
        """Cost of GPUs that become busy in each part, and of the first ones; below 0 where they save more."""
        total = int(self.nodes.opening[n])
        for unit, gpus in zip(self.nodes.units[n], held, strict=True):
            total += int(self.parts.opening[unit]) * (gpus > 0)
            total -= min(int(self.parts.saves[unit]) * gpus, int(self.parts.most_saved[unit]))
        return total

    def meetings(self, n: int, spread: tuple[Crossing, ...]) -> int:
        """What the jobs of a spread cost each other, and those that run there."""
        pair, profile = self.disturbance.pair, self.groups.profile
        inside = [(int(profile[d]), sum(1 << r for r, part in enumerate(split) if part)) for d, split in spread]
        meet = [(q, mask) for q, mask in inside if q >= 0]
        return sum(
            int(pair[q, other])
            for i, (q, mask) in enumerate(meet)
            for other, theirs in (*meet[:i], *self.nodes.residents[n])
            if mask & theirs
        )

    def ways(self, machine: int, places: tuple[tuple[int, ...], ...], split: tuple[int, ...]) -> Ways:
        """Sets of GPUs at ``places`` of each part that a split may take. Raises ``Unsupported`` for too many."""
        if prod(comb(len(place), gpus) for place, gpus in zip(places, split, strict=True)) > MOST_WAYS:
            raise Unsupported(TOO_MANY)
        key = machine, places, split
        if key not in self._known:
            self.check_time()
            distance = self._problem.topology.distance[machine]
            sets = product(*(combinations(place, gpus) for place, gpus in zip(places, split, strict=True)))
            gpus = np.array([[gpu for part in chosen for gpu in part] for chosen in sets], dtype=np.int64)
            paths = distance[gpus[:, :, None], gpus[:, None, :]].sum(axis=(1, 2)) // 2
            order = np.argsort(paths, kind="stable")
            held = [frozenset(row) for row in gpus[order].tolist()]
            self._known[key] = list(zip(paths[order].tolist(), held, strict=True))
        return self._known[key]

    def placed(self, n: int, spread: tuple[Crossing, ...]) -> tuple[int, list[frozenset[int]]]:
        """Return the cost of the paths of a spread, at least, and its GPUs then, by position in the machine."""
        ways = [self.ways(int(self.nodes.machine[n]), self.nodes.free[n], split) for _, split in spread]
        traffic = [self.traffic[d] for d, _ in spread]
        rest = [0] * (len(spread) + 1)
        for i in reversed(range(len(spread))):
            rest[i] = rest[i + 1] + traffic[i] * ways[i][0][0]
        best: list[tuple[int, list[frozenset[int]]]] = []

        def go_on(i: int, cost: int, taken: frozenset[int], held: list[frozenset[int]]) -> None:
            self.check_time()
            if best and cost + rest[i] >= best[0][0]:
                return
            if i == len(spread):
                best[:] = [(cost, held)]
                return
            for paths, gpus in ways[i]:
                if not gpus & taken:
                    go_on(i + 1, cost + traffic[i] * paths, taken | gpus, [*held, gpus])

        go_on(0, 0, frozenset(), [])
        return best[0]


class ListedSpreads:
    """All spreads, each with its exact cost: who meets whom, and which GPUs are idle."""

    def __init__(self, spreading: Spreading, supply: IntArray) -> None:
        """
        List them; ``supply``, shape (D,), are the bundles that jobs need.

        Raises ``Unsupported`` where there are too many.
        """
        self._spreading, self._supply, nodes = spreading, supply, spreading.nodes
        found: list[tuple[int, tuple[Crossing, ...]]] = [(n, ()) for n in range(len(nodes))]
        for n in range(len(nodes)):
            for spread in self._sets(n):
                found.append((n, spread))
                if len(found) > MOST_SPREADS + len(nodes):
                    raise Unsupported(TOO_MANY)
            spreading.check_time()
        self._crossings = [spread for _, spread in found]
        self._uses = np.zeros((len(found), len(supply)), dtype=np.int64)
        self._cost = np.zeros(len(found), dtype=np.int64)  # with each path as short as if its job were alone
        self._settled = [len(spread) < 2 for spread in self._crossings]
        left = _Left(spreading)
        units = []
        for s, (n, spread) in enumerate(found):
            spreading.check_time()
            for d, _ in spread:
                self._uses[s, d] += 1
            held = tuple(sum(split[r] for _, split in spread) for r in range(len(nodes.units[n])))
            machine, free = int(nodes.machine[n]), nodes.free[n]
            paths = sum(spreading.traffic[d] * spreading.ways(machine, free, split)[0][0] for d, split in spread)
            self._cost[s] = spreading.standing(n, held) + spreading.meetings(n, spread) + paths
            units.append(
                [
                    left.unit(unit, held[r], [int(spreading.groups.profile[d]) for d, split in spread if split[r]])
                    for r, unit in enumerate(nodes.units[n])
                ]
            )
        self.rows = SpreadRows(np.array([n for n, _ in found], dtype=np.int64), _padded(units), left.beneath)
        self.parts = left.parts

    def gains(self, price: IntArray, scale: int) -> IntArray:
        """Shape (S,): what the bundles of each spread pay beyond its cost, in 1 / ``scale`` of that."""
        gains: IntArray = self._uses @ price - scale * self._cost
        return gains

    def spread(self, s: int) -> Spread:
        """Return a spread with its exact cost, which from now on counts."""
        n, crossings = int(self.rows.node[s]), self._crossings[s]
        if not self._settled[s]:
            machine, free = int(self._spreading.nodes.machine[n]), self._spreading.nodes.free[n]
            alone = sum(
                self._spreading.traffic[d] * self._spreading.ways(machine, free, split)[0][0] for d, split in crossings
            )
            self._cost[s] += self._spreading.placed(n, crossings)[0] - alone
            self._settled[s] = True
        return Spread(n, crossings, tuple(u for u in self.rows.units[s].tolist() if u >= 0), int(self._cost[s]))

    def single(self) -> list[Spread]:
        """Return the spreads of no job or one."""
        return [self.spread(s) for s, crossings in enumerate(self._crossings) if len(crossings) < 2]

    def of(self, n: int, crossings: tuple[Crossing, ...]) -> Spread:
        """Return the spread of some jobs on a node of state n."""
        at = next(s for s in np.flatnonzero(self.rows.node == n).tolist() if self._crossings[s] == crossings)
        return self.spread(at)

    def _sets(self, n: int) -> Iterator[tuple[Crossing, ...]]:
        """Yield every set of jobs over several parts that the idle GPUs of a node can hold, but for the empty one."""
        free = tuple(len(place) for place in self._spreading.nodes.free[n])
        gpus, supply = self._spreading.groups.gpus, self._supply
        wide = [(d, _splits(int(gpus[d]), free)) for d in self._spreading.wide(n)]
        count = np.zeros(len(supply), dtype=np.int64)

        def extend(
            group: int, at: int, left: tuple[int, ...], held: tuple[Crossing, ...]
        ) -> Iterator[tuple[Crossing, ...]]:
            self._spreading.check_time()
            for g in range(group, len(wide)):
                d, splits = wide[g]
                if count[d] == supply[d]:
                    continue
                for i in range(at if g == group else 0, len(splits)):
                    rest = tuple(have - part for have, part in zip(left, splits[i], strict=True))
                    if min(rest) >= 0:
                        count[d] += 1
                        yield (*held, (d, splits[i]))
                        yield from extend(g, i, rest, (*held, (d, splits[i])))
                        count[d] -= 1

        yield from extend(0, 0, free, ())


class PackedSpreads:
    """
    Spreads by the number of GPUs that they take of each part, packed anew at every price.

    Whom their jobs meet is not counted, and paths are as short as between any GPUs of the machine.
    """

    def __init__(self, spreading: Spreading) -> None:
        """Raises ``Unsupported`` where there are too many parts, or too many GPUs in them."""
        self._spreading, nodes = spreading, spreading.nodes
        free = [tuple(len(place) for place in places) for places in nodes.free]
        if sum(prod(have + 1 for have in parts) for parts in free) > MOST_HELD:
            raise Unsupported(TOO_MANY)
        rows = [(n, (0,) * len(parts)) for n, parts in enumerate(free)]
        for n, parts in enumerate(free):
            if spreading.wide(n):
                some = product(*(range(have + 1) for have in parts))
                rows += [(n, held) for held in some if sum(gpus > 0 for gpus in held) > 1]
        left = _Left(spreading)
        units = [[left.unit(u, gpus, []) for u, gpus in zip(nodes.units[n], held, strict=True)] for n, held in rows]
        self.rows = SpreadRows(np.array([n for n, _ in rows], dtype=np.int64), _padded(units), left.beneath)
        self.parts = left.parts
        self._held = [held for _, held in rows]
        self._standing = np.array([spreading.standing(n, held) for n, held in rows], dtype=np.int64)
        self._packings: dict[tuple[int, tuple[tuple[int, ...], ...], bytes], _Packings] = {}
        self._packing = []
        for n in range(len(nodes)):
            key = int(nodes.machine[n]), nodes.places[n], nodes.able[n].tobytes()
            if key not in self._packings:
                self._packings[key] = _Packings(spreading, n)
            self._packing.append(self._packings[key])

    def gains(self, price: IntArray, scale: int) -> IntArray:
        """Shape (S,): what the bundles of each spread pay beyond its cost, in 1 / ``scale`` of that, at most."""
        for packings in self._packings.values():
            self._spreading.check_time()
            packings.pack(price, scale)
        most = [self._packing[n].most[held] for n, held in zip(self.rows.node.tolist(), self._held, strict=True)]
        return np.array(most, dtype=np.int64) - scale * self._standing

    def spread(self, s: int) -> Spread:
        """Return the spread that pays most at the prices of the last `gains`."""
        n = int(self.rows.node[s])
        return self._made(s, n, self._packing[n].crossings(self._held[s]))

    def single(self) -> list[Spread]:
        """Return the spreads of no job or one."""
        nodes, gpus = self._spreading.nodes, self._spreading.groups.gpus
        free = [tuple(len(place) for place in places) for places in nodes.free]
        one = [
            (n, ((d, split),))
            for n in range(len(nodes))
            for d in self._spreading.wide(n)
            for split in _splits(int(gpus[d]), free[n])
        ]
        return [self.of(n, crossings) for n, crossings in [*((n, ()) for n in range(len(nodes))), *one]]

    def of(self, n: int, crossings: tuple[Crossing, ...]) -> Spread:
        """Return the spread of some jobs on a node of state n."""
        held = tuple(sum(split[r] for _, split in crossings) for r in range(len(self._spreading.nodes.units[n])))
        s = next(s for s in np.flatnonzero(self.rows.node == n).tolist() if self._held[s] == held)
        return self._made(s, n, crossings)

    def _made(self, s: int, n: int, crossings: tuple[Crossing, ...]) -> Spread:
        paths = sum(self._packing[n].paths(d, split) for d, split in crossings)
        units = tuple(u for u in self.rows.units[s].tolist() if u >= 0)
        return Spread(n, crossings, units, int(self._standing[s]) + paths)


class _Packings:
    """What jobs over several parts pay at most, by the GPUs that they take of each part of a machine together."""

    def __init__(self, spreading: Spreading, n: int) -> None:
        self._spreading, self._wide, nodes = spreading, spreading.wide(n), spreading.nodes
        self._machine, self._places = int(nodes.machine[n]), nodes.places[n]
        self._sizes = tuple(len(place) for place in self._places)
        if prod(size + 1 for size in self._sizes) > MOST_HELD:
            raise Unsupported(TOO_MANY)
        self.most: dict[tuple[int, ...], int] = {}
        self._last: dict[tuple[int, ...], Crossing] = {}

    def paths(self, d: int, split: tuple[int, ...]) -> int:
        """Cost of the paths of a bundle, at least."""
        traffic = self._spreading.traffic[d]
        return traffic and traffic * self._spreading.ways(self._machine, self._places, split)[0][0]

    def pack(self, price: IntArray, scale: int) -> None:
        """Find ``most``, by GPUs of each part, and the last job of each: unbounded knapsack."""
        best: dict[tuple[int, ...], tuple[int, int]] = {}  # by split
        for d in self._wide:
            for split in _splits(int(self._spreading.groups.gpus[d]), self._sizes):
                best[split] = max(best.get(split, (NEVER, -1)), (int(price[d]) - scale * self.paths(d, split), d))
        self.most = {(0,) * len(self._sizes): 0}
        for held in product(*(range(size + 1) for size in self._sizes)):
            for split, (pays, d) in best.items():
                before = tuple(have - part for have, part in zip(held, split, strict=True))
                paid = self.most.get(before, NEVER) + pays
                if paid > self.most.get(held, NEVER):
                    self.most[held], self._last[held] = paid, (d, split)
            self.most.setdefault(held, NEVER)

    def crossings(self, held: tuple[int, ...]) -> tuple[Crossing, ...]:
        """Return the jobs that pay most on so many GPUs."""
        out = []
        while any(held):
            out.append(self._last[held])
            held = tuple(have - part for have, part in zip(held, out[-1][1], strict=True))
        return tuple(sorted(out))


class _Left:
    """Units of what spreads leave of parts, behind those of parts as they are."""

    def __init__(self, spreading: Spreading) -> None:
        self._spreading, self._number = spreading, len(spreading.parts)
        self._known: dict[tuple[int, int, tuple[int, ...]], int] = {}

    def unit(self, unit: int, held: int, profiles: list[int]) -> int:
        """Return the unit that is left where jobs of some profiles hold so many GPUs."""
        key = unit, held, tuple(sorted(q for q in profiles if q >= 0))
        return self._known.setdefault(key, self._number + len(self._known)) if held else unit

    @property
    def beneath(self) -> IntArray:
        """See `SpreadRows`."""
        return np.array([*range(self._number), *(unit for unit, *_ in self._known)], dtype=np.int64)

    @property
    def parts(self) -> Parts:
        """All units."""
        pair, spreading = self._spreading.disturbance.pair, self._spreading
        beside = np.zeros((len(self._known), len(pair)), dtype=np.int64)
        for row, (*_, profiles) in zip(beside, self._known, strict=True):
            for profile in profiles:
                row += pair[profile]
        unit, gpus = (np.array([key[i] for key in self._known], dtype=np.int64) for i in range(2))
        return spreading.parts.joined(spreading.parts.beside_crossing(unit, gpus, beside, spreading.groups))


def _padded(units: list[list[int]]) -> IntArray:
    """Shape (S, parts): the units of each spread, -1 beyond the last."""
    widest = max(map(len, units), default=0)
    return np.array([row + [-1] * (widest - len(row)) for row in units], dtype=np.int64).reshape(len(units), widest)


@lru_cache(maxsize=1 << 13)
def _splits(gpus: int, most: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    """
    Return every way to split GPUs over two or more parts that hold up to ``most`` each.

    Raises ``Unsupported`` where there are too many.
    """
    room = [sum(most[at:]) for at in range(len(most) + 1)]

    def go_on(at: int, left: int, split: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if at == len(most):
            yield split
            return
        for part in range(max(0, left - room[at + 1]), min(most[at], left) + 1):
            yield from go_on(at + 1, left - part, (*split, part))

    found = tuple(islice(go_on(0, gpus, ()), MOST_WAYS + 1)) if gpus <= room[0] else ()
    if len(found) > MOST_WAYS:
        raise Unsupported(TOO_MANY)
    return tuple(split for split in found if sum(part > 0 for part in split) > 1)
