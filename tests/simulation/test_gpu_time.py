"""GPU time added up, and idle GPUs as time goes by: worked by hand."""

import pytest

from placeopt import BadInput
from placeopt.simulation import GpuUse, fragments_over_time, occupancy, slots_over_time

PAIR = {"a": 2, "b": 2}
NODES = {"a": 4, "b": 4, "c": 2}
STAYS = [
    GpuUse(2, 6, {("a", 0): 1000, ("a", 1): 500}),
    GpuUse(4, 6, {("a", 1): 500, ("b", 0): 1000}),  # GPU 1 of a is held already
    GpuUse(6, 9, {("c", 0): 1000, ("c", 1): 1000}),
]


def test_occupancy_by_hand() -> None:
    """
    Four GPUs for 10 ms. One job holds GPU 0 of a from 0 to 10, one both of b from 2 to 6, one half of GPU 1 of a from
    5 to 25, of which 5 count.

    Granted: 10 + 2 x 4 + 0.5 x 5 = 20.5. Active: 10 + 8 + 5 = 23. Stranded: GPU 1 of a from 0 to 5; b is idle or full.
    """
    first = GpuUse(0, 10, {("a", 0): 1000}, percent=60)
    second = GpuUse(2, 6, {("b", 0): 1000, ("b", 1): 1000}, percent=30)
    found = occupancy([first, second, GpuUse(5, 25, {("a", 1): 500})], PAIR, 0, 10)
    assert (found.total, found.granted, found.idle) == (40, 20_500, 19_500)
    assert (found.active, found.stranded, found.busy_percent) == (23, 5, 60 * 10 + 2 * 30 * 4)
    assert (found.allocation, found.active_rate, found.fragmentation) == (20.5 / 40, 23 / 40, 5 / 40)
    assert found.utilisation == 840 / 4000


def test_a_gpu_granted_twice_over_is_full_and_no_more() -> None:
    """Two jobs hold all of it (overcommit): 2000 granted, nothing idle, at most 100 % in use."""
    found = occupancy([GpuUse(0, 1, {("a", 0): 1000}, percent=70)] * 2, {"a": 1}, 0, 1)
    assert (found.granted, found.idle, found.active, found.busy_percent) == (2000, 0, 1, 100)


def test_no_jobs() -> None:
    """All is idle, also in the whole of time; an empty window has no rates to divide by."""
    assert occupancy([], PAIR, 5, 9).idle == 4 * 4 * 1000
    nothing = occupancy([], {}, 5, 5)
    assert (nothing.allocation, nothing.fragmentation) == (0.0, 0.0)
    assert slots_over_time([], NODES, 1) == [(0, 10)]


def test_pieces_by_hand() -> None:
    """From 2: two of a. From 4: three of b as well. From 6 nothing: c is full."""
    assert fragments_over_time(STAYS, NODES) == [(0, 0), (2, 2), (4, 5), (6, 0), (9, 0)]


def test_slots_by_hand() -> None:
    """
    Of two GPUs: 2 + 2 + 1; 1 + 2 + 1; 1 + 1 + 1; 2 + 2 + 0; all again. Of four: a and b, b, none, both.

    Of six GPUs in one rack: a with b has 8, then 6, then 5 idle; c alone never has any. Before time 0 somebody may be
    there already.
    """
    assert slots_over_time(STAYS, NODES, 2) == [(0, 5), (2, 4), (4, 3), (6, 4), (9, 5)]
    assert slots_over_time(STAYS, NODES, 4) == [(0, 2), (2, 1), (4, 0), (6, 2), (9, 2)]
    racks = {"a": "r0", "b": "r0", "c": "r1"}
    assert slots_over_time(STAYS, NODES, 6, racks) == [(0, 1), (2, 1), (4, 0), (6, 1), (9, 1)]
    assert slots_over_time([GpuUse(-3, 1, {("c", 0): 1})], {"c": 2}, 1) == [(-3, 1), (1, 2)]
    with pytest.raises(BadInput, match="size: 0"):
        slots_over_time([], NODES, 0)
