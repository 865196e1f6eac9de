"""The stages ``search`` and ``relaxation``: better plans, a bound at their value, and where they stand aside."""

from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import pytest

import placeopt
from placeopt.build import instance, job
from placeopt.check import violations
from placeopt.generators import generate
from placeopt.model import Plan, Stage
from placeopt.solving import sizes
from placeopt.solving.budget import Budget
from placeopt.solving.context import SolveContext
from placeopt.solving.stages import neighbourhood_search


def stages_of(plan: Plan, name: str) -> list[Stage]:
    """Return what the stage said of itself, each time."""
    return [stage for stage in plan.stages if stage.name == name]


@pytest.mark.parametrize("spec", ["gangs", "uniform", "varied"])
def test_never_worse_than_greedy_and_bounded(spec: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In value, then in cost; and no plan of that value costs less than the bound says."""
    monkeypatch.setattr(neighbourhood_search, "STEPS_PER_SECOND", 1)  # the clock must not end it on a busy machine
    round_ = generate(spec, jobs=150, nodes=48, gpus=4, seed=6)
    greedy = placeopt.solve(round_, method="stranding", time_limit_s=60, deterministic=True)
    plan = placeopt.solve(round_, method="search", time_limit_s=40, deterministic=True)
    assert violations(round_, plan) == []
    ours, theirs = ([level.objective for level in one.levels] for one in (plan, greedy))
    assert (ours[0], -ours[1]) >= (theirs[0], -theirs[1])
    assert spec != "gangs" or ours[1] < theirs[1]
    stages = [*stages_of(plan, "flows"), *stages_of(plan, "columns")]
    bounds = [stage.bound for stage in stages if stage.bound is not None]
    assert bounds
    assert 0 < max(bounds) <= ours[1]
    assert plan.levels[1].bound in (None, max(bounds))
    assert stages_of(plan, "search")[0].outcome in ("improved", "kept")


def test_the_same_plan_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """In deterministic mode, whatever the clock does; and work ends the stage."""
    monkeypatch.setattr(neighbourhood_search, "STEPS_PER_SECOND", 1)
    round_ = generate("gangs", jobs=60, nodes=24, gpus=4, seed=7)
    one, two = (
        placeopt.solve(round_, method="search", time_limit_s=40, deterministic=True, isolation="thread")
        for _ in range(2)
    )
    assert one == two
    assert one.limit == "work"


def test_it_ends_with_a_proof() -> None:
    """One job that costs nothing needs no steps."""
    plan = placeopt.solve(instance(1, [job("a", gpus=4)]), method="search")
    assert plan.status == "optimal"
    assert stages_of(plan, "search") == []


def test_auto_searches_where_exact_stages_cannot_prove(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the table of sizes: before exact stages where the round is wide, else after them if they prove nothing."""
    round_ = generate("gangs", jobs=25, nodes=12, gpus=8, seed=2)

    def order() -> list[str]:
        plan = placeopt.solve(round_, time_limit_s=5, deterministic=True)
        return [stage.name for stage in plan.stages if stage.name.startswith(("search", "counts"))]

    monkeypatch.setattr(sizes, "SIZES", replace(sizes.SIZES, exact_columns=0))
    assert order()[:3] == ["search", "counts-cost", "search"]
    monkeypatch.setattr(sizes, "SIZES", replace(sizes.SIZES, search_product=10**9))
    assert order()[:2] == ["counts-cost", "search"]


def test_auto_searches_where_fillings_stay_far_from_the_bound() -> None:
    """Several resources bind, only value counts, and shares are many: fillings of GPUs come to nothing there."""
    round_ = generate("resources", jobs=60, nodes=8, gpus=8, seed=1)
    plan = placeopt.solve(round_, time_limit_s=5, deterministic=True)
    order = [stage.name for stage in plan.stages if stage.outcome != "skipped"]
    assert "search" in order
    assert "counts-value" not in order or order.index("search") < order.index("counts-value")
    near = generate("planted", jobs=80, nodes=6, gpus=8, seed=1)
    names = [stage.name for stage in placeopt.solve(near, time_limit_s=5, deterministic=True).stages]
    assert names.index("counts-value") < names.index("search")


def test_cut_by_time_it_keeps_what_it_has() -> None:
    """No error, no worse plan."""
    round_ = generate("gangs", jobs=1000, nodes=200, gpus=4, seed=2)
    plan = placeopt.solve(round_, method="search", time_limit_s=0.4)
    assert violations(round_, plan) == []


@pytest.mark.parametrize(
    ("proven", "bounded", "reserved_s"), [(True, True, 0.0), (False, True, 2.0), (True, False, 2.0)]
)
def test_time_for_a_bound_is_reserved_while_one_can_still_come(
    *, proven: bool, bounded: bool, reserved_s: float
) -> None:
    """
    A search whose better plan proves the value needs a bound on the cost at that value after it.

    Without it, gangs ended with a bound of 0.
    """
    moments: list[float] = []
    budget = SimpleNamespace(offer_s=0.0, stopped=lambda: False, is_past=moments.append)
    context = SimpleNamespace(value_proven=proven, has_cost_bound=bounded, handover=SimpleNamespace(cost_bound_s=2.0))
    run = object.__new__(neighbourhood_search._Run)
    run._context, run._budget, run._ends = cast("SolveContext", context), cast("Budget", budget), 100.0
    run._is_late()
    assert moments == [100.0 - neighbourhood_search.RESERVES * reserved_s]
