"""A round whose time is over while it is compiled: a lawful plan that places nothing, not an overrun."""

from functools import cache
from typing import Any

import pytest

from placeopt import BadInput, Engine, Instance, Policy, Unsupported, audit, solve, violations
from placeopt.build import instance, job, machine, node, running
from placeopt.errors import OutOfTime
from placeopt.linear import ModelBuilder
from placeopt.model import Link, Machine, Running
from placeopt.problem import compile_problem

NO_TIME_S = 1e-9


@cache
def rings() -> tuple[Machine, ...]:
    """Rings of 1,024 GPUs: their distances take longer than the fifth of a second that machines get in any case."""
    return tuple(
        machine(f"ring{w}", gpus=1024, links=tuple(Link(gpus=(i, (i + 1) % 1024), weight=w) for i in range(1024)))
        for w in range(1, 7)
    )


A, B = job("a"), job("b", gpus=2, value=5, communication={"weight": 1})


def ring_round(*held: Running, **fields: Any) -> Instance:
    """A job ``a`` that runs, unless others are given, and a ``b`` of value 5 that waits unless it runs."""
    nodes = [node(f"n{i}", kind.id) for i, kind in enumerate(rings())]
    return instance(nodes, [A, B], machines=rings(), running=held or [running(A, [("n0", [0])])], **fields)


@pytest.mark.parametrize("deterministic", [False, True])
def test_no_time_for_distances_leaves_everything_where_it_is(deterministic: bool) -> None:
    """The plan is for the waiting jobs, states no cost that it could not know, and passes both judges."""
    round_ = ring_round()
    plan = solve(round_, time_limit_s=NO_TIME_S, deterministic=deterministic)
    assert plan.asked == ("b",)
    assert [(one.job, one.reason) for one in plan.unplaced] == [("b", "not_reached")]
    assert (plan.status, plan.limit, plan.costs) == ("feasible", "time", {})
    assert (plan.levels[0].objective, plan.levels[0].bound) == (0, 5)
    assert (plan.seconds.total is None) == deterministic
    assert violations(round_, plan) == []
    assert audit(round_, plan) == []


def test_common_machines_are_compiled_whatever_the_time(engine: Engine) -> None:
    """A few milliseconds, so greedy's first plan comes as before; and after a round without time."""
    four = machine(links=tuple(Link(gpus=(i, (i + 1) % 4), weight=1) for i in range(4)))
    assert engine.solve(ring_round(), time_limit_s=NO_TIME_S).asked == ("b",)
    plan = engine.solve(instance(1, [job("a")], machines=[four]), time_limit_s=NO_TIME_S)
    assert (plan.asked, [held.job for held in plan.placements]) == (None, ["a"])


def test_nothing_to_win_is_proven_without_distances(engine: Engine) -> None:
    """Nobody waits and no cost counts: the empty plan is optimal, and the audit agrees."""
    policy = Policy(weights={"communication": 0, "fragmentation": 0, "interference": 0, "resource": 0})
    round_ = ring_round(running(A, [("n0", [0])]), running(B, [("n0", [1, 2])]), policy=policy)
    plan = engine.solve(round_, time_limit_s=NO_TIME_S)
    assert (plan.status, plan.limit, plan.gap) == ("optimal", "none", 0.0)
    assert audit(round_, plan) == []


def test_what_stands_is_listed_and_what_contradicts_itself_is_bad_input(engine: Engine) -> None:
    """A running job on a node that is not listed stands; the plan without time says so."""
    round_ = ring_round(running(A, [("gone", [0])]))
    plan = engine.solve(round_, time_limit_s=NO_TIME_S)
    assert plan.asked == ("b",)
    assert [entry.job for entry in plan.standing] == ["a"]
    assert violations(round_, plan) == []
    with pytest.raises(BadInput, match="running placements"):
        engine.solve(ring_round(running(A, [("n0", [0])]), running(B, [("n0", [0, 1])])), time_limit_s=NO_TIME_S)


def test_compiling_and_building_check_their_deadline() -> None:
    """A model too large is refused at the first column too many, not after the last."""
    with pytest.raises(OutOfTime):
        compile_problem(ring_round(), deadline=0.0)
    with pytest.raises(OutOfTime, match="no time left to build the model"):
        ModelBuilder(0.0).add_variables(0, 1, count=3)
    builder = ModelBuilder(most_variables=10)
    builder.add_variables(0, 1, count=10)
    assert not builder.is_full
    with pytest.raises(Unsupported, match="at least 11 columns: too large"):
        builder.add_variables(0, 1)
    assert (builder.is_full, builder.num_variables) == (True, 10)
