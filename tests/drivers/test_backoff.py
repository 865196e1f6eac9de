"""Growing pauses."""

from placeopt.drivers import Backoff, pause_s


def test_pauses_double_up_to_the_longest_and_a_success_clears_them() -> None:
    assert [pause_s(n, 5, 60) for n in range(1, 7)] == [5, 10, 20, 40, 60, 60]
    assert pause_s(10**6, 5, 60) == 60
    nodes: Backoff[str] = Backoff(10, 100)
    assert nodes.fail("g1", 0) == 10
    assert nodes.fail("g1", 5) == 10  # the same trouble, seen again
    assert nodes.fail("g1", 10) == 30
    assert (nodes.paused(29), nodes.paused(30)) == (frozenset({"g1"}), frozenset())
    nodes.succeed("g1")
    assert nodes.fail("g1", 100) == 110
