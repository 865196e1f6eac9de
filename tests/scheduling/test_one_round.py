"""One round under a scheduling policy: its decision as it is, with what it is worth, and a bound of the round."""

import threading

import pytest

from made_rounds import generate
from placeopt import BadInput, Engine, Instance, violations
from placeopt.build import instance, job, running
from placeopt.scheduling import (
    LiveScheduler,
    Scheduling,
    named_policy,
    plan_round,
    policy_names,
    scheduling_in,
    setting_of,
)

WATCHES = {"pab"}
"""Policies that watch how fast jobs run, which no round shows."""


@pytest.fixture(scope="module")
def busy() -> Instance:
    """Jobs of several priorities wait, and what runs may be changed."""
    made: Instance = generate("preempt", jobs=20, nodes=4, gpus=4, seed=3)
    return made


def test_look_ahead_has_looked_ahead() -> None:
    """
    A job of four GPUs waits for one that ends soon; by rates, the short ones come first.

    The plan is stated as it was decided, and not decided anew.
    """
    held = job("held", gpus=3, run_time_ms=50_000)
    wide = job("wide", gpus=4, run_time_ms=1000, arrival_ms=1)
    long = job("long", run_time_ms=500_000, arrival_ms=2)
    round_ = instance(
        1, [held, wide, long], now_ms=10_000, running=[running(held, [("n0", [0, 1, 2])], expected_end_ms=11_000)]
    )
    plan = plan_round(round_, named_policy("placeopt-jct"), deterministic=True)
    assert violations(round_, plan) == []
    assert [one.job for one in plan.placements] == ["held"]
    reasons = {one.job: one.detail for one in plan.unplaced}
    assert reasons["long"] == "fits on node 'n0', but policy 'placeopt-jct' leaves it waiting"


@pytest.mark.parametrize("name", [name for name in policy_names() if name not in WATCHES])
def test_the_plan_is_what_the_policy_decides(name: str, busy: Instance, engine: Engine) -> None:
    plan = plan_round(busy, named_policy(name), deterministic=True, time_limit_s=20.0)
    assert violations(busy, plan) == []
    value = plan.levels[0]
    assert value.bound is not None
    assert value.objective <= value.bound
    scheduling = named_policy(name)
    live = LiveScheduler(engine, scheduling)
    live.follow(busy)
    decided = live.decide(20.0, threading.Event(), deterministic=True)
    if scheduling_in(scheduling, setting_of(busy)).rounds == "each":
        assert {one.job: one for one in plan.placements} == {one.job: one for one in decided.placements}
        assert plan.policy.name == name


def test_a_decision_stands_though_it_is_worth_less_than_doing_nothing() -> None:
    """Inference stops training by its rule, however much that is worth."""
    held = job("held", gpus=4, value=100, kind="training")
    asked = job("asked", gpus=4, value=1, kind="inference")
    made = instance(1, [held, asked], running=[running(held, [("n0", [0, 1, 2, 3])], preemptible=True)])
    plan = plan_round(made, Scheduling(name="own", rounds="each", preempts={"rule": "inference"}, method="best-fit"))
    assert [one.job for one in plan.placements] == ["asked"]
    assert [one.job for one in plan.preempted] == ["held"]
    assert plan.levels[0].objective == 1


def test_what_the_policy_leaves_waiting_waits_by_the_policy() -> None:
    """Not because the search did not come to it."""
    first, second = job("first", gpus=8, arrival_ms=0), job("second", gpus=1, arrival_ms=1)
    made = instance(1, [first, second], now_ms=10)
    plan = plan_round(made, Scheduling(name="own", rounds="each", strict=True, method="best-fit"))
    assert not plan.placements
    reasons = {one.job: (one.reason, one.detail) for one in plan.unplaced}
    assert reasons["second"] == ("policy", "fits on node 'n0', but policy 'own' leaves it waiting")


def test_a_policy_that_watches_speeds_is_refused(busy: Instance) -> None:
    with pytest.raises(BadInput, match="which no reading shows"):
        plan_round(busy, named_policy("pab"))
