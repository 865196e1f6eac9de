"""
Slots of GPUs with profiles: which shares fit on one together, and where each begins.

A share of a GPU is a profile at a start. What runs has its start; what is placed in a round gets one when placements
are written. Until then a round chooses which shares are on a GPU together, so that a packing of them exists. What is on
a GPU is one number, its *load*: the slots that shares with a start take as bits, and above these, for each profile of
the GPU, how many shares have none yet. Loads add up like all amounts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from placeopt.model import Placement as PlacementRecord
from placeopt.model.machine import MAX_SLOTS, Profile
from placeopt.problem.arrays import BoolArray, IntArray, Placement
from placeopt.problem.grants import with_shares

if TYPE_CHECKING:
    from placeopt.problem.problem import Problem

BITS = 4
"""Of a load, for the number of shares of one profile: no more than `MAX_SLOTS` fit."""
Geometry = tuple[Profile, ...]
Slots = tuple[tuple[int, tuple[int, ...]], ...]
"""Width and starts of each profile."""


def slots_of(geometry: Geometry) -> Slots:
    """Return width and starts of each profile, to be looked up by."""
    return tuple((profile.width, profile.starts) for profile in geometry)


def number_of(geometry: Geometry, name: str | None) -> int:
    """Return the position of a profile in a geometry, -1 where the GPU has no such profile."""
    return next((p for p, profile in enumerate(geometry) if profile.id == name), -1)


def has_profile(geometry: Geometry, name: str | None) -> bool:
    """Return whether a GPU takes shares of a profile; None: of any size, or of the profile without a name."""
    return name is None if not geometry else number_of(geometry, name) >= 0


def load_of(geometry: Geometry, name: str | None, start: int | None = None) -> int:
    """Return the load of one share; 0 on a GPU without such a profile."""
    number = number_of(geometry, name)
    if number < 0:
        return 0
    return 1 << MAX_SLOTS + BITS * number if start is None else taken(geometry[number].width, start)


def taken(width: int, start: int) -> int:
    """Return slots as bits."""
    return ((1 << width) - 1) << start


def held_slots(load: int) -> int:
    """Return the slots, as bits, of the shares that have a start."""
    return load & ((1 << MAX_SLOTS) - 1)


@lru_cache(maxsize=1 << 16)
def packing(slots: Slots, load: int) -> tuple[tuple[int, ...], ...] | None:
    """
    Return the starts of the shares of each profile that have none yet, None where there is no room for all.

    Of all packings it is the one beside which most shares fit, of the widest profile first; of equal ones the first.
    """
    counts = [load >> (MAX_SLOTS + BITS * p) & ((1 << BITS) - 1) for p in range(len(slots))]
    widest = sorted(range(len(slots)), key=lambda p: -slots[p][0])
    shares = [p for p in widest for _ in range(counts[p])]
    best: tuple[tuple[int, ...], list[int]] | None = None
    for starts, free in _packings(slots, shares, ~held_slots(load)):
        left = tuple(sum(free & taken(slots[p][0], s) == taken(slots[p][0], s) for s in slots[p][1]) for p in widest)
        if best is None or left > best[0]:
            best = left, starts
    if best is None:
        return None
    return tuple(tuple(s for q, s in zip(shares, best[1], strict=True) if q == p) for p in range(len(slots)))


def _packings(slots: Slots, shares: list[int], free: int, first: int = 0) -> Iterator[tuple[list[int], int]]:
    """Yield the start of each share, given by its profile and of the first at least ``first``, and what stays free."""
    if not shares:
        yield [], free
        return
    width, starts = slots[shares[0]]
    for start in starts:
        bits = taken(width, start)
        if start >= first and free & bits == bits:
            after = start + 1 if shares[1:2] == shares[:1] else 0
            for others, left in _packings(slots, shares[1:], free & ~bits, after):
                yield [start, *others], left


def with_room(geometries: tuple[Geometry, ...], profile: str | None, gpu_type: IntArray, load: IntArray) -> BoolArray:
    """Return which GPUs take one more share of a profile; same shape as ``gpu_type`` and ``load``, what is on each."""
    room = np.zeros(load.shape, dtype=bool)
    for kind in np.unique(gpu_type).tolist():
        geometry, mine = geometries[kind], gpu_type == kind
        if not geometry:
            room[mine] = profile is None
        elif has_profile(geometry, profile):
            more = load_of(geometry, profile)
            loads, where = np.unique(load[mine], return_inverse=True)
            fits = [packing(slots_of(geometry), one + more) is not None for one in loads.tolist()]
            room[mine] = np.array(fits, dtype=bool)[where.reshape(-1)]
    return room


def slot_loads(problem: Problem, placement: Placement) -> list[tuple[int, int]]:
    """Return the GPUs with profiles that a placement holds, and its load on each."""
    name, types = problem.options.gpu_profile[placement.option], problem.type_geometry
    starts = placement.starts or (None,) * len(placement.gpus)
    held = ((g, types[problem.gpu_type[g]], s) for g, s in zip(placement.gpus, starts, strict=True))
    return [(gpu, load_of(geometry, name, start)) for gpu, geometry, start in held if geometry]


def with_starts(
    problem: Problem, records: Sequence[PlacementRecord], placed: Sequence[Placement], beside: IntArray | None = None
) -> list[PlacementRecord]:
    """
    Return records of placements with the first slots of their shares; those that have them are the same records.

    ``beside``: Shape (G,), the load of each GPU by all other jobs; None: there are no others.
    """
    loads: dict[int, int] = {}
    waiting: dict[tuple[int, int], list[int]] = {}  # GPU, profile -> positions whose share has no start yet
    starts: dict[int, dict[tuple[str, str], int]] = {}

    def put(at: int, gpu: int, start: int) -> None:
        node = int(problem.gpu_node[gpu])
        starts.setdefault(at, {})[problem.node_ids[node], str(gpu - problem.first_gpu[node])] = start

    for at, (record, placement) in enumerate(zip(records, placed, strict=True)):
        is_new = not any(assignment.starts for assignment in record.assignments)
        known = dict(zip(placement.gpus, placement.starts, strict=False))
        for gpu, load in slot_loads(problem, placement):
            loads[gpu] = loads.get(gpu, 0 if beside is None else int(beside[gpu])) + load
            if not known:
                geometry = problem.type_geometry[problem.gpu_type[gpu]]
                number = number_of(geometry, problem.options.gpu_profile[placement.option])
                waiting.setdefault((gpu, number), []).append(at)
            elif is_new:
                put(at, gpu, known[gpu])
    for (gpu, number), shares in waiting.items():
        packed = packing(slots_of(problem.type_geometry[problem.gpu_type[gpu]]), loads[gpu])
        for at, start in zip(shares, () if packed is None else packed[number], strict=packed is not None):
            put(at, gpu, start)
    out = []
    for at, record in enumerate(records):
        own = starts.get(at, {})
        held = [{gpu: own[a.node, gpu] for gpu in a.gpus if (a.node, gpu) in own} for a in record.assignments]
        out.append(with_shares(record, held, "starts") if own else record)
    return out
