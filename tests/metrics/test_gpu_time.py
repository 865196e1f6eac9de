"""GPU time added up: worked by hand."""

from placeopt.metrics import GpuUse, occupancy

NODES = {"a": 2, "b": 2}


def test_by_hand() -> None:
    """
    Four GPUs for 10 ms. One job holds GPU 0 of a from 0 to 10, one both of b from 2 to 6, one half of GPU 1 of a from
    5 to 25, of which 5 count.

    Granted: 10 + 2 x 4 + 0.5 x 5 = 20.5. Active: 10 + 8 + 5 = 23. Stranded: GPU 1 of a from 0 to 5; b is idle or full.
    """
    found = occupancy(
        [
            GpuUse(0, 10, {("a", 0): 1000}, percent=60),
            GpuUse(2, 6, {("b", 0): 1000, ("b", 1): 1000}, percent=30),
            GpuUse(5, 25, {("a", 1): 500}),
        ],
        NODES,
        0,
        10,
    )
    assert (found.total, found.granted, found.idle) == (40, 20_500, 19_500)
    assert (found.active, found.stranded) == (23, 5)
    assert found.busy_percent == 60 * 10 + 2 * 30 * 4
    assert (found.allocation, found.active_rate, found.fragmentation) == (20.5 / 40, 23 / 40, 5 / 40)
    assert found.utilisation == 840 / 4000


def test_a_gpu_granted_twice_over_is_full_and_no_more() -> None:
    """Two jobs hold all of it (overcommit): 2000 granted, nothing idle, at most 100 % in use."""
    twice = [GpuUse(0, 1, {("a", 0): 1000}, percent=70), GpuUse(0, 1, {("a", 0): 1000}, percent=70)]
    found = occupancy(twice, {"a": 1}, 0, 1)
    assert (found.granted, found.idle, found.active, found.busy_percent) == (2000, 0, 1, 100)


def test_no_jobs() -> None:
    """All is idle, and an empty window has no rates to divide by."""
    assert occupancy([], NODES, 5, 9).idle == 4 * 4 * 1000
    nothing = occupancy([], {}, 5, 5)
    assert (nothing.allocation, nothing.fragmentation) == (0.0, 0.0)
