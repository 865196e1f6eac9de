"""
Stage ``multi-start``: more passes of greedy, only where they may help, the same in deterministic mode.

A queue of the policy without a limit keeps stage ``refills`` away, which is there for rounds without queues.
"""

import pytest

import placeopt
from placeopt import generate
from placeopt.check import violations
from placeopt.model import Instance, Queue
from placeopt.solving import METHODS
from placeopt.solving.methods import solver_method
from placeopt.solving.stages.multi_start import MultiStart


def of_resources(seed: int, jobs: int = 120, nodes: int = 10) -> Instance:
    made = generate("resources", jobs=jobs, nodes=nodes, gpus=8, seed=seed)
    return made.model_copy(update={"policy": made.policy.model_copy(update={"queues": (Queue(id="any"),)})})


@pytest.fixture(autouse=True)
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A method of greedy, bound and this stage."""
    monkeypatch.setitem(METHODS, "more-starts", solver_method(MultiStart()))


def test_other_orders_find_more_where_resources_bind() -> None:
    """Never less than greedy; by more than 1 % in all on rounds on which nothing was tuned."""
    before = after = 0
    for seed in range(40, 46):
        round_ = of_resources(seed)
        plan = placeopt.solve(round_, method="more-starts", time_limit_s=60, deterministic=True)
        assert violations(round_, plan) == []
        first = placeopt.solve(round_, method="stranding", time_limit_s=60, deterministic=True)
        assert plan.levels[0].objective >= first.levels[0].objective
        before, after = before + first.levels[0].objective, after + plan.levels[0].objective
    assert after > 1.01 * before


def test_deterministic_passes_are_the_same_at_any_limit() -> None:
    """Their number does not follow from the clock."""
    round_ = of_resources(7)
    plans = [
        placeopt.solve(round_, method="more-starts", time_limit_s=limit, deterministic=True) for limit in (10, 10, 60)
    ]
    stages = [stage for plan in plans for stage in plan.stages if stage.name == "multi-start"]
    assert [stage.detail for stage in stages] == ["12 passes of greedy"] * 3
    assert all(plan.placements == plans[0].placements for plan in plans)


def test_it_is_skipped_where_it_cannot_help() -> None:
    """Near the bound, and in rounds small enough for an exact stage or too large for another pass."""
    near = generate("uniform", jobs=300, nodes=20, gpus=4, seed=1)
    small = of_resources(1, jobs=12, nodes=2)
    large = of_resources(1, jobs=900, nodes=40)
    for round_ in (near, small, large):
        plan = placeopt.solve(round_, method="more-starts", time_limit_s=60, deterministic=True)
        assert "multi-start" not in [stage.name for stage in plan.stages]
