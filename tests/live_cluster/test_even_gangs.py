"""A gang that is spread evenly over racks: a live cluster compares with the racks that a whole round compares with."""

import pytest

from helpers.live_engine import engine_of, places
from placeopt import Instance, solve
from placeopt.build import cluster, gang, instance, job, node, running
from placeopt.model import Domain, Spread


def racks(*, full: tuple[int, ...], selected: bool) -> Instance:
    """Six racks of two nodes of four GPUs; a gang of two nodes; ``selected``: it may use the first two racks."""
    domains = [Domain(id=f"r{i}") for i in range(6)]
    nodes = [node(f"n{i}", domain=f"r{i // 2}", labels={"pool": "a" if i < 4 else "b"}) for i in range(12)]
    held = [job(f"held{i}", gpus=4) for i in full]
    even = gang(
        "even",
        workers=2,
        gpus=4,
        spread=[Spread(level="rack", skew_max=1)],
        node_selector={"pool": "a"} if selected else {},
    )
    runs = [running(one, [(f"n{i}", range(4))]) for one, i in zip(held, full, strict=True)]
    return instance(cluster(nodes, domains=domains), [*held, job("one"), even], running=runs)


@pytest.mark.parametrize("selected", [False, True])
@pytest.mark.parametrize(
    ("full", "starts"),
    [
        ((), True),
        (tuple(range(4, 12)), True),  # one worker in each of two racks
        (tuple(range(2, 12)), False),  # one rack is left: two there, none in another
    ],
)
def test_which_racks_are_compared(full: tuple[int, ...], starts: bool, selected: bool) -> None:
    """In a decision for the gang, in a round of what waits, and in a whole round; full racks count as empty of it."""
    round_ = racks(full=full, selected=selected)
    assert ("even" in places(solve(round_))) == starts
    with engine_of(round_) as engine:
        assert ("even" in places(engine.place(["even"]))) == starts
        for plan in (engine.place(waiting_only=True), engine.place()):
            assert ("even" in places(plan)) == starts
            assert [one.reason for one in plan.unplaced if one.job == "even"] == ["conflict"] * (not starts)
