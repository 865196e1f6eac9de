"""Idle GPUs as time goes by: worked by hand."""

import pytest

from placeopt import BadInput
from placeopt.metrics import GpuUse, fragments_over_time, slots_over_time

NODES = {"a": 4, "b": 4, "c": 2}
STAYS = [
    GpuUse(2, 6, {("a", 0): 1000, ("a", 1): 500}),
    GpuUse(4, 6, {("a", 1): 500, ("b", 0): 1000}),  # GPU 1 of a is held already
    GpuUse(6, 9, {("c", 0): 1000, ("c", 1): 1000}),
]


def test_pieces_by_hand() -> None:
    """From 2: two of a. From 4: three of b as well. From 6 nothing: c is full."""
    assert fragments_over_time(STAYS, NODES) == [(0, 0), (2, 2), (4, 5), (6, 0), (9, 0)]


def test_slots_by_hand() -> None:
    """Of two GPUs: 2 + 2 + 1; 1 + 2 + 1; 1 + 1 + 1; 2 + 2 + 0; all again. Of four: a and b, b, none, both."""
    assert slots_over_time(STAYS, NODES, 2) == [(0, 5), (2, 4), (4, 3), (6, 4), (9, 5)]
    assert slots_over_time(STAYS, NODES, 4) == [(0, 2), (2, 1), (4, 0), (6, 2), (9, 2)]


def test_slots_of_racks_by_hand() -> None:
    """Of six GPUs in one rack: a with b has 8, then 6, then 5 idle; c alone never has any."""
    racks = {"a": "r0", "b": "r0", "c": "r1"}
    assert slots_over_time(STAYS, NODES, 6, racks) == [(0, 1), (2, 1), (4, 0), (6, 1), (9, 1)]


def test_no_jobs() -> None:
    """What there is at first stays; before time 0 somebody may be there already."""
    assert slots_over_time([], NODES, 1) == [(0, 10)]
    assert slots_over_time([GpuUse(-3, 1, {("c", 0): 1})], {"c": 2}, 1) == [(-3, 1), (1, 2)]


def test_a_slot_of_no_gpus_is_refused() -> None:
    """It would be everywhere."""
    with pytest.raises(BadInput, match="size: 0"):
        slots_over_time([], NODES, 0)
