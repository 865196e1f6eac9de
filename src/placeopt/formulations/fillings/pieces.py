"""Pieces: what a bundle puts into one part of a node, in each way to spread it over parts, and what a way costs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from placeopt.errors import Unsupported
from placeopt.formulations.cost_relaxation.node_classes import LeastPaths
from placeopt.formulations.fillings.disturbance import Disturbance
from placeopt.formulations.fillings.groups import BundleGroups
from placeopt.problem import UNLIMITED, BoolArray, IntArray, Problem

MOST_WAYS = 10_000
"""Ways of all bundle groups up to which they are listed."""


@dataclass(frozen=True, eq=False)
class Pieces:
    """P kinds of pieces."""

    gpus: IntArray  # (P,)
    milli: IntArray  # (P,) of each GPU
    allowed: BoolArray  # (P, C) node classes
    profile: IntArray  # (P,) whom a piece disturbs, -1 where that is not counted

    def __len__(self) -> int:
        """P."""
        return len(self.gpus)


@dataclass(frozen=True, eq=False)
class Ways:
    """Y ways to put a bundle into parts of one node."""

    bundle_group: IntArray  # (Y,)
    split: tuple[tuple[int, ...], ...]  # (Y,) GPUs in each part, descending
    cost: IntArray  # (Y,) of the paths between the bundle's GPUs, at least
    pieces: IntArray  # (Y, P) number of each kind


def pieces_of(
    problem: Problem, bundle_groups: BundleGroups, disturbance: Disturbance, path_weight: int
) -> tuple[Pieces, Ways]:
    """
    Return the ways of all bundle groups and the pieces that they consist of.

    ``path_weight`` is the weight W of communication. A job disturbs others wherever they meet it, but each once: so
    only pieces of jobs that lie in one part count, and what they cost beside each other is what a part holds of them.

    Raises ``Unsupported`` where there are too many ways.
    """
    paths = _Paths(problem, disturbance.part)
    kinds: dict[tuple[object, ...], int] = {}
    ways: list[tuple[int, tuple[int, ...], int, dict[int, int]]] = []
    for d in np.flatnonzero(bundle_groups.gpus > 0).tolist():
        gpus, price = int(bundle_groups.gpus[d]), path_weight * int(bundle_groups.traffic[d])
        for split in paths.splits(gpus):
            profile = int(bundle_groups.profile[d]) if len(split) == 1 else -1
            held: dict[int, int] = {}
            for part in split:
                key = part, int(bundle_groups.milli[d]), bundle_groups.allowed[d].tobytes(), profile
                kind = kinds.setdefault(key, len(kinds))
                held[kind] = held.get(kind, 0) + 1
            ways.append((d, split, price * paths.least(split) if price else 0, held))
            if len(ways) > MOST_WAYS:
                raise Unsupported("bundles can lie in too many ways over the sockets of nodes")
    pieces = np.zeros((len(ways), len(kinds)), dtype=np.int64)
    for row, (*_, held) in zip(pieces, ways, strict=True):
        row[list(held)] = list(held.values())
    gpus_of, milli, allowed, profiles = zip(*kinds, strict=True) if kinds else ((), (), (), ())
    classes = bundle_groups.allowed.shape[1]
    return (
        Pieces(
            gpus=np.array(gpus_of, dtype=np.int64),
            milli=np.array(milli, dtype=np.int64),
            allowed=np.frombuffer(b"".join(allowed), dtype=bool).reshape(len(kinds), classes),
            profile=np.array(profiles, dtype=np.int64),
        ),
        Ways(
            bundle_group=np.array([way[0] for way in ways], dtype=np.int64),
            split=tuple(way[1] for way in ways),
            cost=np.array([way[2] for way in ways], dtype=np.int64),
            pieces=pieces,
        ),
    )


class _Paths:
    """Paths between GPUs in parts of one node, the least that any machine has."""

    def __init__(self, problem: Problem, part: IntArray) -> None:
        topology = problem.topology
        _, nodes = np.unique(topology.node_machine, return_index=True)
        self._machines: list[tuple[IntArray, IntArray]] = []  # distances, and the part of each GPU
        for n in nodes.tolist():
            first, end = problem.node_gpu_start[n], problem.node_gpu_start[n + 1]
            _, of_gpu = np.unique(part[first:end], return_inverse=True)
            self._machines.append((topology.distance[int(topology.node_machine[n])], of_gpu.reshape(-1)))
        most = max((len(distance) for distance, _ in self._machines), default=0)
        self.inside: IntArray = np.full(most + 1, UNLIMITED, dtype=np.int64)
        """Shape (most GPUs + 1,): of k GPUs in one part; ``UNLIMITED`` where there are fewer."""
        self.inside[:2] = 0
        self._apart = UNLIMITED  # of two GPUs in different parts
        for distance, of_gpu in self._machines:
            least, other = LeastPaths(distance), of_gpu[:, None] != of_gpu[None, :]
            for p in range(int(of_gpu.max(initial=-1)) + 1):
                here = least.of(of_gpu == p)
                self.inside[: len(here)] = np.minimum(self.inside[: len(here)], here)
            self._apart = min(self._apart, int(distance[other].min(initial=UNLIMITED)))

    def splits(self, gpus: int) -> list[tuple[int, ...]]:
        """Ways to divide GPUs over parts of some machine, descending; none where no machine has so many."""
        found: dict[tuple[int, ...], None] = {}
        for _, of_gpu in self._machines:
            sizes = np.sort(np.bincount(of_gpu))[::-1].tolist()
            found.update(dict.fromkeys(_partitions(gpus, gpus, sizes)))
        return list(found)

    def least(self, split: tuple[int, ...]) -> int:
        """Return the length of all paths between the GPUs of a split, at least."""
        total, held = 0, 0
        for part in split:
            total += int(self.inside[part]) + self._apart * part * held
            held += part
        return total


def _partitions(gpus: int, most: int, sizes: list[int]) -> Iterator[tuple[int, ...]]:
    """Yield the partitions of a number into descending pieces, the first at most ``most``, that fit ``sizes``."""
    if not gpus:
        yield ()
        return
    for part in range(min(gpus, most, sizes[0] if sizes else 0), 0, -1):
        for rest in _partitions(gpus - part, part, sizes[1:]):
            yield (part, *rest)
