"""Parts of nodes as units: alike in what is free, and in what a job costs beside what runs there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from placeopt.errors import Unsupported
from placeopt.formulations.fillings.disturbance import Disturbance
from placeopt.formulations.fillings.groups import WHOLE
from placeopt.formulations.fillings.pieces import Pieces
from placeopt.problem import BoolArray, IntArray, State
from placeopt.problem.free_capacity import gpu_milli_left

MOST_SLOTS = 64
"""Slots of a part up to which they are as fine as shares of GPUs are."""


@dataclass(frozen=True, eq=False)
class Parts:
    """U units: states of parts of nodes into which any piece fits; Q profiles."""

    of_gpu: IntArray  # (G,) unit of the part of each GPU, -1 where nothing fits
    count: IntArray  # (U,) number of parts
    slots: IntArray  # (U,) free, all GPUs together
    takes: IntArray  # (P,) slots of a piece, rounded down
    allowed: BoolArray  # (U, P) pieces that fit alone
    beside: IntArray  # (U, Q) cost of a job of each profile beside what runs there

    def __len__(self) -> int:
        """U."""
        return len(self.count)


def parts_of(state: State, disturbance: Disturbance, pieces: Pieces) -> Parts:
    """
    Return the parts of nodes beside what ``state`` holds.

    A slot is a share of a GPU in which all shares are whole numbers, or a coarser one: then demands are rounded down.

    Raises ``Unsupported`` where shares of GPUs do not bind.
    """
    problem = state.problem
    if not problem.shares_bind:
        raise Unsupported("fillings of parts count shares of GPUs, which do not bind in this round")
    _, first, part_of = np.unique(disturbance.part, return_index=True, return_inverse=True)
    part_of = part_of.reshape(-1)
    left, beside = gpu_milli_left(state), _beside(state, disturbance, part_of)
    shares = np.unique(pieces.milli)
    finest = int(np.gcd.reduce(np.append(shares, WHOLE)))
    size = np.bincount(part_of)
    coarse = -(-WHOLE * int(size.max(initial=1)) // MOST_SLOTS)
    slot = finest if coarse <= finest else min(coarse, int(shares.min(initial=WHOLE)))
    free = np.bincount(part_of, left // finest * finest).astype(np.int64) // slot
    fits = np.zeros((len(size), len(pieces)), dtype=bool)
    for fitting, gpus, milli in zip(fits.T, pieces.gpus, pieces.milli, strict=True):
        fitting[:] = np.bincount(part_of, left >= milli) >= gpus
    node_class = problem.node_class[problem.gpu_node[first]]
    fits &= pieces.allowed[:, node_class].T
    some = np.flatnonzero(fits.any(axis=1))
    keys = np.column_stack((free, fits, beside))[some]
    distinct, unit, count = np.unique(keys, axis=0, return_inverse=True, return_counts=True)
    of_part = np.full(len(size), -1, dtype=np.int64)
    of_part[some] = unit.reshape(-1)
    ends = 1 + len(pieces)
    return Parts(
        of_gpu=of_part[part_of],
        count=count.astype(np.int64),
        slots=distinct[:, 0],
        takes=pieces.gpus * pieces.milli // slot,
        allowed=distinct[:, 1:ends].astype(bool),
        beside=distinct[:, ends:],
    )


def _beside(state: State, disturbance: Disturbance, part_of: IntArray) -> IntArray:
    """Shape (parts, Q): cost of a job of each profile beside the jobs that hold a GPU of the part."""
    out = np.zeros((int(part_of.max(initial=-1)) + 1, len(disturbance.pair)), dtype=np.int64)
    for tenants in state.tenants:
        for (profile, gpus), jobs in tenants.items():
            number = disturbance.profile[profile]
            if number >= 0:
                out[list({int(part_of[gpu]) for gpu in gpus})] += jobs * disturbance.pair[number]
    return out
