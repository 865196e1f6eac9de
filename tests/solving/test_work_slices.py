"""Slices of deterministic work: every limit works off a prefix of one sequence, so a longer one gives no worse plan."""

import time

import pytest

from placeopt import Engine, build
from placeopt.generators import generate
from placeopt.solving import METHODS, SolveParams
from placeopt.solving.budget import Budget
from placeopt.solving.stages.bound import Bound
from placeopt.solving.stages.greedy import Greedy


def slices(limit: float, per_second: float = 10) -> list[tuple[float, int]]:
    """Return work and steps of every slice of a deterministic round."""
    now = time.monotonic()
    budget = Budget(SolveParams(time_limit_s=limit, deterministic=True), started=now, deadline=now + 600)
    out = [(budget.work(1.0), budget.steps(per_second))]
    while budget.begin_slice():
        out.append((budget.work(1.0), budget.steps(per_second)))
    return out


def test_a_limit_works_off_a_prefix() -> None:
    """Slices do not depend on the limit; their steps add up to what their end stands for."""
    longest = slices(100)
    assert [work for work, _ in longest] == pytest.approx([0.3, 1, 3, 10, 30, 100])
    for limit in (0.01, 0.3, 0.7, 1, 2.5, 3, 10, 99):
        assert slices(limit) == longest[: len(slices(limit))]
    assert sum(steps for _, steps in longest) == 1000
    assert [len(slices(limit)) for limit in (0.01, 0.3, 1, 10)] == [1, 1, 2, 4]


def test_the_clock_has_no_slices() -> None:
    """Outside of deterministic mode everything runs once, with the whole limit."""
    now = time.monotonic()
    budget = Budget(SolveParams(time_limit_s=10), started=now, deadline=now + 600)
    assert budget.work(1.0) == 10
    assert not budget.begin_slice()


def test_the_first_plan_and_the_bound_are_made_once() -> None:
    """Slices repeat what improves plans; nothing of greedy methods."""
    repeated = METHODS["auto"].repeated
    assert repeated
    assert not any(isinstance(stage, Greedy | Bound) for stage in repeated)
    assert METHODS["stranding"].repeated == ()


def test_a_longer_limit_is_no_worse() -> None:
    """A round that stays open: plans of two slices begin with that of one."""
    of = generate("varied", jobs=50, nodes=16, gpus=4, seed=2)
    with Engine() as engine:
        short, long = (engine.solve(of, time_limit_s=limit, deterministic=True) for limit in (0.3, 1.0))
    first = [(stage.name, stage.objective) for stage in short.stages]
    if "time" not in (short.limit, long.limit):  # a machine that is too slow ends rounds by the clock
        assert [(stage.name, stage.objective) for stage in long.stages[: len(first)]] == first
        assert len(long.stages) > len(first)
    value = [plan.levels[0].objective for plan in (short, long)]
    assert value[1] >= value[0]


def test_a_proven_round_ends_in_its_first_slice() -> None:
    """One job on one node: nothing is repeated."""
    of = build.instance(1, [build.job("only")])
    with Engine() as engine:
        plans = [engine.solve(of, time_limit_s=limit, deterministic=True) for limit in (3.0, 30.0)]
    assert [plan.status for plan in plans] == ["optimal", "optimal"]
    assert len(plans[0].stages) == len(plans[1].stages)
