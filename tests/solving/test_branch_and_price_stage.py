"""Stage ``arrangements`` on rounds that once went wrong."""

from __future__ import annotations

from placeopt import generate, solve, violations


def test_groups_that_share_rooms_take_no_more_whole_nodes_than_they_have() -> None:
    """
    A round that a benchmark found: rows of GPU groups alone let two jobs across GPU groups share a group of one node.
    """
    round_ = generate("cubemesh", jobs=100, nodes=32, gpus=8, seed=0)
    plan = solve(round_, method="arrangements", time_limit_s=6)
    assert violations(round_, plan) == []
    assert all("fault" not in stage.detail for stage in plan.stages)
    assert plan.stages[-1].name == "arrangements"
