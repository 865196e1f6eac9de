"""The cheapest arrangement of a set of tasks on a table: a few GPUs whose distances follow no tree."""

from __future__ import annotations

import time
from functools import lru_cache
from itertools import permutations

import numpy as np

from placeopt.problem import IntArray
from placeopt.rank_mapping.case import FloatArray, MappingProblem
from placeopt.rank_mapping.hierarchy import Block

MAX_TABLE = 8
"""GPUs up to which all arrangements are listed: 8! = 40,320, on a DGX-1 840 that differ."""

CHUNK = 4_000_000
"""Arrangements x sets priced at once: 32 MB."""


def cheapest(case: MappingProblem, block: Block, sets: IntArray, deadline: float = np.inf) -> FloatArray:
    """
    Shape (sets,): least cost of each set of tasks on the table, its members' own ways out included.

    One matrix product: (arrangements x pairs of GPUs) @ (pairs of tasks x sets), some sets at a time.

    Raises
    ------
    TimeoutError
        If the deadline, of ``time.monotonic()``, comes first.
    """
    distances, _ = _of_block(case, block)
    step = max(1, CHUNK // len(distances))
    out = np.zeros(len(sets))
    for i in range(0, len(sets), step):
        if time.monotonic() >= deadline:
            raise TimeoutError
        out[i : i + step] = (distances @ _prices(case, block, sets[i : i + step])).min(axis=0)
    return out


def arrange(case: MappingProblem, block: Block, tasks: int) -> IntArray:
    """Shape (m,): GPUs of the set's tasks, ascending by task, in a cheapest arrangement."""
    distances, positions = _of_block(case, block)
    best = int((distances @ _prices(case, block, np.array([tasks])))[:, 0].argmin())
    gpus: IntArray = np.array(block.members, dtype=np.int64)[positions[best]]
    return gpus


def _of_block(case: MappingProblem, block: Block) -> tuple[FloatArray, IntArray]:
    inside = case.distances[np.ix_(block.members, block.members)]
    return _arrangements(inside.tobytes(), block.outside)


@lru_cache(maxsize=4)  # up to 14 MB each; a job meets one or two kinds of machine
def _arrangements(inside: bytes, outside: tuple[float, ...]) -> tuple[FloatArray, IntArray]:
    """
    Arrangements that differ: distances of all pairs of places and the ways out, (P, m (m - 1) / 2 + m), and positions.

    Arrangements that symmetries of the table turn into each other have the same row and stand once.
    """
    size = len(outside)
    matrix = np.frombuffer(inside, dtype=np.float64).reshape(size, size)
    positions = np.array(list(permutations(range(size))), dtype=np.int64)
    a, b = np.triu_indices(size, 1)
    rows = np.hstack([matrix[positions[:, a], positions[:, b]], np.array(outside)[positions]])
    codes = np.searchsorted(np.unique(rows), rows).astype(np.uint8)  # at most 36 values
    first = np.unique(codes, axis=0, return_index=True)[1]
    return rows[first], positions[first]


def _prices(case: MappingProblem, block: Block, sets: IntArray) -> FloatArray:
    """Shape (pairs + m, sets): traffic between a set's tasks, and from each to all tasks outside the set."""
    n, size = case.num_tasks, len(block.members)
    bits = (sets[:, None] >> np.arange(n)) & 1
    members = np.nonzero(bits)[1].reshape(len(sets), size)
    a, b = np.triu_indices(size, 1)
    inner = case.traffic[members[:, a], members[:, b]]
    out = case.traffic.sum(axis=1)[members] - case.traffic[members[:, :, None], members[:, None, :]].sum(axis=2)
    return np.vstack([inner.T, out.T])
