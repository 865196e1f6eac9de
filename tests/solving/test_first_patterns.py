"""The stage ``patterns-first``: a plan before greedy in large rounds where CPU or memory binds."""

import pytest

import placeopt
from placeopt.check import violations
from placeopt.generators import generate
from placeopt.model import Plan
from placeopt.solving.stages import first_patterns


def ran(plan: Plan) -> bool:
    """Tell whether the stage made a plan."""
    return any(stage.name == "patterns-first" and stage.outcome == "improved" for stage in plan.stages)


@pytest.fixture(autouse=True)
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let it run whatever time there is, on rounds of any size."""
    monkeypatch.setattr(first_patterns, "RESERVES", (0.0, float("inf")))
    monkeypatch.setattr(first_patterns, "BESIDE_PRODUCT", 0)


@pytest.mark.parametrize("seed", [21, 22, 23])
def test_the_plan_is_worth_more_than_that_of_greedy(seed: int) -> None:
    """It is checked, and bounded by the stage's own prices; greedy does not run."""
    round_ = generate("varied", jobs=1500, nodes=150, gpus=4, seed=seed)
    greedy = placeopt.solve(round_, method="stranding", time_limit_s=60)
    plan = placeopt.solve(round_, time_limit_s=10)
    assert violations(round_, plan) == []
    assert ran(plan)
    assert plan.levels[0].objective > greedy.levels[0].objective
    assert plan.levels[0].bound is not None
    assert plan.levels[0].objective <= plan.levels[0].bound
    assert plan.levels[0].bound - plan.levels[0].objective <= 0.01 * plan.levels[0].objective
    assert all(stage.name != "heuristic" for stage in plan.stages)


def test_it_stands_aside() -> None:
    """Where only GPUs bind, where GPUs suffice for all, where the clock may not decide, and where shares do not nest."""
    for spec, jobs, nodes in (("uniform", 400, 40), ("varied", 60, 40), ("fractions", 200, 10)):
        assert not ran(placeopt.solve(generate(spec, jobs=jobs, nodes=nodes, gpus=4, seed=3), time_limit_s=2))
    round_ = generate("varied", jobs=400, nodes=40, gpus=4, seed=3)
    assert not ran(placeopt.solve(round_, time_limit_s=1, deterministic=True, isolation="thread"))
